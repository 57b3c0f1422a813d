-- Locks: ends a hold; with the last one the lock is free. What is needed for
-- it is no memory, so that a full server can be relieved of its locks.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  hold
-- ARGV[2]  the fence that the hold was granted, or 0 where nobody was told
-- returns  1: ended; 0: ended, but the lock had lapsed; -1: it was granted to
--          another since; -2: the record is gone, or the lock was forced open;
--          -3: the hold is not there, and it was ended before
-- effects  HDEL; then, by pcall, PEXPIRE of a record that would live for ever,
--          and PUBLISH or SPUBLISH where a waiter asked for it
local key, id, mine = KEYS[1], ARGV[1], ARGV[2] + 0
local hold = 'hold:' .. id

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'owner', 'keep', 'wake', hold)
if not was[4] then
  local rest = call('HMGET', key, 'fence', 'ttl')
  if not rest[1] then
    return -2
  elseif rest[1] + 0 > mine then
    return -1
  end
  return was[1] and not rest[2] and -2 or -3
end
local lives, keep, wake = call('PTTL', key), was[2] + 0, was[3]
local last = was[1] == id or call('HLEN', key) == (wake and 6 or 5)
if last then
  call('HDEL', key, hold, 'owner', 'ttl', 'keep', 'wake')
else
  call('HDEL', key, hold)
end

if last and lives < 0 then
  pcall('PEXPIRE', key, keep)
end
if last and wake == 'SPUBLISH' then
  pcall('SPUBLISH', key, 'free')
elseif last and wake then
  pcall('PUBLISH', key, 'free')
end
return lives >= 0 and lives <= keep and 0 or 1
