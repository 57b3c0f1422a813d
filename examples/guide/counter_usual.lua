-- Counts up to a limit. KEYS[1] the counter, ARGV[1] the limit
local n = redis.call('GET', KEYS[1])
if n == nil then
  n = 0
end
if tonumber(n) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('INCR', KEYS[1])
return 1
