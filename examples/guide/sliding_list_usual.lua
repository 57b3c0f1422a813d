-- Allows so many requests in any window. KEYS[1] the log; ARGV[1] now, ARGV[2] the window, both in ms; ARGV[3] limit
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('LLEN', KEYS[1]) >= limit then
  if now - tonumber(redis.call('LINDEX', KEYS[1], 0)) < window then
    return 0
  end
  redis.call('LPOP', KEYS[1])
end
redis.call('RPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], window)
return 1
