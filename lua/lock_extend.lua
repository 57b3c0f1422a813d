-- Locks: prolongs a lock to at least ttl from now. It never shortens it.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  hold
-- ARGV[2]  the fence that the hold was granted
-- ARGV[3]  ttl, in milliseconds
-- returns  the milliseconds until the lock lapses; or 0: it has lapsed; -1: it was
--          granted to another since; -2: the hold is not there; an error if the record is
--          not neap's
-- effects  PEXPIRE, and HSET of a ttl that is longer than any before
local key, hold, mine, ttl = KEYS[1], 'hold:' .. ARGV[1], ARGV[2] + 0, ARGV[3] + 0

local call = redis.call
local was = call('HMGET', key, 'fence', 'ttl', 'keep', hold)
if not was[4] then
  return was[1] and was[1] + 0 > mine and -1 or -2
end
local lives, most, keep = call('PTTL', key), was[2] + 0, was[3] + 0
local left = lives - keep
local late = lives < 0 or left > most -- the clock was set back
if late then
  left = most
end
if left ~= left then -- no number
  return redis.error_reply('ERR the key holds no record of neap')
elseif left <= 0 then
  return 0
end
if ttl > most then
  call('HSET', key, 'ttl', ttl)
end
if ttl > left or late then
  left = math.max(ttl, left)
  call('PEXPIRE', key, left + keep)
end
return left
