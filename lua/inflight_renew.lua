-- Requests in flight: renews a lease. A lease that has lapsed is renewed too if its slot
-- is still there, because then no other caller has taken the slot.
--
-- KEYS[1]  the leases, as inflight_acquire.lua keeps them
-- ARGV[1]  token
-- ARGV[2]  lease, in microseconds
-- ARGV[3]  time to live of the set, in milliseconds: longer than a lease
-- returns  1, or 0 if the token has no slot
-- effects  ZADD and PEXPIRE; nothing if the token has no slot
local key, token, lease, longest = KEYS[1], ARGV[1], ARGV[2] + 0, ARGV[3]

local call = redis.call
if not call('ZSCORE', key, token) then
  return 0
end
local clock = call('TIME')
call('ZADD', key, clock[1] * 1000000 + clock[2] + lease, token)
call('PEXPIRE', key, longest)
return 1
