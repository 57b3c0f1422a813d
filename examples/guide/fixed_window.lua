-- Counts in a window. KEYS[1] the counter, ARGV[1] the limit, ARGV[2] the window in milliseconds
local n = redis.call('INCR', KEYS[1])
if n == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if n > tonumber(ARGV[1]) then
  return 0
end
return 1
