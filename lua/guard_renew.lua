-- Idempotency: makes the lease of the owner that runs the work end later.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- ARGV[1]  owner
-- ARGV[2]  lease, in milliseconds
-- ARGV[3]  keep, in milliseconds: how long the record outlives this call
-- returns  1: the lease now ends a lease from now; 0: this owner has finished; -1: the
--          run is another owner's, or free or in doubt; -2: there is no record
-- effects  1: PEXPIRE, and SET with PX
local key, owner, lease, keep = KEYS[1], ARGV[1], ARGV[2] + 0, ARGV[3]

local call = redis.call
local record = call('GET', key)
if not record then
  return -2
end
local state, fence, attempt, who, print =
  string.match(record, '^(%l+) (%d+) (%d+) %d+ %d+ (%S+) (%S+)\n')
if who ~= owner then
  return -1
elseif state == 'done' or state == 'gone' then
  return 0
elseif state ~= 'pending' and state ~= 'asking' then
  return -1
end
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
call('PEXPIRE', key, keep) -- a script that has written once may write again on a full server
record = string.format('%s %s %s %.0f %.0f %s %s\n', state, fence, attempt, now + lease, lease, owner, print)
call('SET', key, record, 'PX', keep)
return 1
