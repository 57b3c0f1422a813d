-- Takes the next free seat of the house and returns it, or 0 if all are taken.
-- KEYS[1] the seats taken, ARGV[1] where to begin, ARGV[2] how many there are
local first, all = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = first, first + all - 1 do
  local seat = (i - 1) % all + 1
  if redis.call('SISMEMBER', KEYS[1], seat) == 0 then
    redis.call('SADD', KEYS[1], seat)
    redis.call('PEXPIRE', KEYS[1], 86400000)
    return seat
  end
end
return 0
