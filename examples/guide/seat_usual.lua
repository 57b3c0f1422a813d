-- Takes the next free seat of the house.
-- KEYS[1] the seats taken, ARGV[1] where to begin, ARGV[2] how many there are
local seat = tonumber(ARGV[1])
while redis.call('SADD', KEYS[1], seat) == 0 do
  seat = seat % ARGV[2] + 1
end
return seat
