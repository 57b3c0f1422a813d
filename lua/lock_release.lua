-- Locks: ends a hold; with the last one the lock is free. What is needed for
-- it is no memory, so that a full server can be relieved of its locks.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  hold
-- ARGV[2]  the fence that the hold was granted, or 0 where nobody was told
-- returns  1: ended; 0: ended, but the lock had lapsed; -1: it was granted to
--          another since; -2: the record is gone, or the lock was forced open;
--          -3: the hold is not there, and it was ended before
-- effects  HDEL; then, by pcall, PUBLISH or SPUBLISH where a waiter asked for it
local key, hold, mine = KEYS[1], 'hold:' .. ARGV[1], ARGV[2] + 0

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'wake', hold)
if not was[1] then
  return -2
end
local rest = call('HLEN', key) - (was[5] and 5 or 4)
if not was[6] then
  if was[1] + 0 > mine then
    return -1
  end
  return was[2] and rest == 0 and -2 or -3
end
if rest > 1 then
  call('HDEL', key, hold)
else
  call('HDEL', key, hold, 'owner', 'ttl', 'keep', 'wake')
end

local lives = call('PTTL', key)
local ended = lives >= 0 and lives <= was[4] + 0 and 0 or 1
if rest == 1 and was[5] == 'SPUBLISH' then
  pcall('SPUBLISH', key, 'free')
elseif rest == 1 and was[5] then
  pcall('PUBLISH', key, 'free')
end
return ended
