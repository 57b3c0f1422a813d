-- Requests in flight: counts the leases that have not lapsed.
--
-- KEYS[1]  the leases, as inflight_acquire.lua keeps them
-- returns  how many there are
-- effects  nothing
local key = KEYS[1]
local clock = redis.call('TIME')
return redis.call('ZCOUNT', key, string.format('(%.0f', clock[1] * 1000000 + clock[2]), '+inf')
