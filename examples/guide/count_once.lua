-- Counts a call once, however often it is sent, and returns how many calls there were.
-- KEYS[1] the calls of this minute, ARGV[1] the call's own random name, ARGV[2] time to live in milliseconds
local new = redis.call('SADD', KEYS[1], ARGV[1])
local n = redis.call('SCARD', KEYS[1])
if new == 1 and n == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return n
