-- Idempotency: notes that the work has run. The owner that began it last may do this
-- even if its lease has ended or the record is gone.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- ARGV[1]  owner
-- ARGV[2]  new state: done or gone
-- ARGV[3]  keep, in milliseconds: how long the record outlives this call
-- ARGV[4]  fence that the owner was given
-- ARGV[5]  attempt that it was
-- ARGV[6]  fingerprint, or a dash
-- ARGV[7]  the result; empty if the state is gone
-- returns  1: it is noted; 2: it is noted, and there was no record; -1: the run is
--          another owner's or free, or was resolved
-- effects  1: PEXPIRE, SET with PX; 2: SET with PX
local key, owner, becomes, keep = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local fence, attempt, print, result = ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local call = redis.call
local record = call('GET', key)
if record then
  local state, number, count, who, what =
    string.match(record, '^(%l+) (%d+) (%d+) %d+ %d+ (%S+) (%S+)\n')
  if who ~= owner or state == 'free' then
    return -1
  elseif state == 'done' or state == 'gone' then
    return 1
  end
  fence, attempt, print = number, count, what
end
call('PEXPIRE', key, keep) -- a script that has written once may write again on a full server
local line = string.format('%s %s %s 0 0 %s %s\n', becomes, fence, attempt, owner, print)
call('SET', key, line .. result, 'PX', keep)
return record and 1 or 2
