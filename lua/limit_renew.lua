-- Renews the leases of a decision's estimates. limit_set.lua describes estimates.
--
-- KEYS[i]  a window's estimates
-- ARGV[2 * i - 1]  how long the lease lasts from now, in milliseconds
-- ARGV[2 * i]  the estimate, token:cost
-- returns  how many are still there
-- effects  ZADD of those, and PEXPIRE if a time to live is missing
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000
local there = 0
for i = 1, #KEYS do
  local key, lease, estimate = KEYS[i], ARGV[2 * i - 1] + 0, ARGV[2 * i]
  if call('ZSCORE', key, estimate) then
    local ends = now + lease
    call('ZADD', key, ends, estimate)
    if call('PTTL', key) == -1 then
      call('PEXPIRE', key, lease)
    end
    there = there + 1
  end
end
return there
