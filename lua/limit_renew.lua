-- Renews the leases of estimates. limits/estimates.lua describes estimates.
--
-- KEYS[1]  a window's estimates
-- ARGV[1]  how long a lease lasts from now, in milliseconds
-- ARGV[i]  from the second on: estimates, token:cost, at most 64
-- returns  for each estimate 1, or 0 if it is not there any more
-- effects  ZREM of nothing, ZADD of those that are there, and PEXPIRE if a time to live is missing
local key, lease = KEYS[1], ARGV[1] + 0

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000
local ends = string.format('%.0f', now + lease) -- once for all, which is quicker
local there, all = {}, {}
for i = 2, #ARGV do
  local estimate = ARGV[i]
  there[i - 1], all[2 * i - 3], all[2 * i - 2] = 1, ends, estimate
end
call('ZREM', key, '') -- a script that has written once may write again on a full server
local renewed = call('ZADD', key, 'XX', 'CH', unpack(all))
if renewed < #there then -- some are gone, or end in this millisecond anyway
  renewed = 0
  for i = 1, #there do
    there[i] = call('ZSCORE', key, all[2 * i]) and 1 or 0
    renewed = renewed + there[i]
  end
end
if renewed > 0 and call('PTTL', key) == -1 then
  call('PEXPIRE', key, lease)
end
return there
