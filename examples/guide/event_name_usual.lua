-- Notes an event under the microsecond at which it came. KEYS[1] the events, ARGV[1] time to live in milliseconds
local time = redis.call('TIME')
local name = 'at-' .. (time[1] * 1000000 + time[2])
redis.call('SADD', KEYS[1], name)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return name
