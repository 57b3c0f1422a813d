-- Jobs that run once a tick: ends a run. A run that lapsed may still complete, as long as
-- no other was begun. Ending a run needs no memory.
--
-- KEYS[1]  the record of the tick, as once_start.lua keeps it
-- ARGV[1]  hold
-- ARGV[2]  the fence that the run was granted, or 0 if no caller was told
-- ARGV[3]  how: completed; failed; or undone, for a run that was to be the only one and
--          was not begun
-- returns  1: ended; -1: another run was begun since; -2: the record is gone; -3: the
--          hold is not there, and it was ended before
-- effects  HDEL, or DEL if undone; then, by pcall, PUBLISH or SPUBLISH if a waiter asked
--          for it
local key, hold, mine, how = KEYS[1], 'hold:' .. ARGV[1], ARGV[2] + 0, ARGV[3]

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'fence', 'wake', hold)
if not was[1] then
  return -2
end
if not was[3] then
  return was[1] + 0 > mine and -1 or -3
end
if how == 'undone' then
  call('DEL', key)
else
  call('HDEL', key, hold, 'owner', 'ttl', 'keep', 'wake', how == 'completed' and 'open' or hold)
end
if was[2] == 'SPUBLISH' then
  pcall('SPUBLISH', key, 'free')
elseif was[2] then
  pcall('PUBLISH', key, 'free')
end
return 1
