-- Adds to a counter that lives for so many milliseconds from its first count.
-- KEYS[1] the counter, ARGV[1] how many, ARGV[2] time to live
local n = redis.call('INCRBY', KEYS[1], ARGV[1])
if n == tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return n
