-- Counts up to a limit. KEYS[1] the counter, ARGV[1] the limit, ARGV[2] time to live
local n = tonumber(redis.call('GET', KEYS[1]) or 0)
if n >= tonumber(ARGV[1]) then
  return 0
end
if n == 0 then
  redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
else
  redis.call('INCR', KEYS[1])
end
return 1
