-- Idempotency: gives up a run that its owner has not finished.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- ARGV[1]  owner
-- ARGV[2]  how: free: nothing was done; doubt: something may have been done;
--          undo: no caller was told that the run was begun
-- ARGV[3]  keep, in milliseconds, for a record that becomes free
-- ARGV[4]  keep, in milliseconds, for a record that becomes doubt
-- returns  1: given up now, or before unless it is to be undone; 0: the run is done,
--          or there is nothing to undo; -1: the run is another owner's; -2: there is
--          no record
-- effects  1, if it was not given up before: PEXPIRE, and SET with PX
local key, owner, how, short, long = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

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
elseif state == 'free' or state == 'doubt' then
  return how == 'undo' and 0 or 1
end
local becomes, count = how, attempt + 0
if how == 'undo' then
  becomes, count = state == 'asking' and 'doubt' or 'free', attempt - 1
end
local keep = becomes == 'doubt' and long or short
call('PEXPIRE', key, keep) -- a script that has written once may write again on a full server
call('SET', key, string.format('%s %s %.0f 0 0 %s %s\n', becomes, fence, count, owner, print), 'PX', keep)
return 1
