-- Requests in flight: gives a slot back.
--
-- KEYS[1]  the leases, as inflight_acquire.lua keeps them
-- ARGV[1]  token
-- returns  1, or 0 if the token has no slot
-- effects  ZREM
local key, token = KEYS[1], ARGV[1]
return redis.call('ZREM', key, token)
