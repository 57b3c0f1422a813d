-- Idempotency: an operator decides how a run ended that is in doubt, or whose lease
-- has ended.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- ARGV[1]  token that replaces the owner from now on
-- ARGV[2]  new state: free, done or gone
-- ARGV[3]  keep, in milliseconds: how long the record outlives this call
-- ARGV[4]  the result; empty unless the state is done
-- returns  1: it is noted; 0: it is not in doubt; -1: it is running; -2: there is
--          no record
-- effects  1, unless this token has noted it before: PEXPIRE, and SET with PX
local key, token, becomes, keep, result = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local call = redis.call
local record = call('GET', key)
if not record then
  return -2
end
local state, fence, attempt, ends, who, print =
  string.match(record, '^(%l+) (%d+) (%d+) (%d+) %d+ (%S+) (%S+)\n')
if who == token then
  return 1
elseif state == 'pending' or state == 'asking' then
  local time = call('TIME')
  if ends - (time[1] * 1000 + time[2] / 1000) > 0 then
    return -1
  end
elseif state ~= 'doubt' then
  return 0
end
call('PEXPIRE', key, keep) -- a script that has written once may write again on a full server
local line = string.format('%s %s %s 0 0 %s %s\n', becomes, fence, attempt, token, print)
call('SET', key, line .. result, 'PX', keep)
return 1
