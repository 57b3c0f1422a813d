-- Requests in flight: renews leases. A lease that has lapsed is renewed too if its slot is
-- still there, because then no other caller has taken the slot.
--
-- KEYS[1]  the leases, as inflight_acquire.lua keeps them
-- ARGV[1]  lease, in microseconds
-- ARGV[2]  time to live of the set, in milliseconds: longer than a lease
-- ARGV[i]  from the third on: tokens, at most 64
-- returns  for each token 1, or 0 if it has no slot
-- effects  ZREM of nothing; ZADD of those that have a slot, and PEXPIRE if one has
local key, lease, longest = KEYS[1], ARGV[1] + 0, ARGV[2]

local call = redis.call
local clock = call('TIME')
local ends = string.format('%.0f', clock[1] * 1000000 + clock[2] + lease) -- once for all, which is quicker
local there, all = {}, {}
for i = 3, #ARGV do
  local token = ARGV[i]
  there[i - 2], all[2 * i - 5], all[2 * i - 4] = 1, ends, token
end
call('ZREM', key, '') -- a script that has written once may write again on a full server
local renewed = call('ZADD', key, 'XX', 'CH', unpack(all))
if renewed < #there then -- some are gone, or end in this microsecond anyway
  renewed = 0
  for i = 1, #there do
    there[i] = call('ZSCORE', key, all[2 * i]) and 1 or 0
    renewed = renewed + there[i]
  end
end
if renewed > 0 then
  call('PEXPIRE', key, longest)
end
return there
