-- Locks: ends all holds of every owner. The owner stays in the record as a mark, by which
-- a hold that was forced is told from one that was ended. It stays without a ttl, so that
-- it does not hold the lock again if a clock is set back.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- returns  1, or 0 if nobody held the lock
-- effects  PEXPIRE, HDEL; then, by pcall, PUBLISH or SPUBLISH to all, if a waiter asked for
--          it
local key = KEYS[1]

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'ttl', 'keep', 'wake')
if not was[1] then
  return 0
end
local lives, keep = call('PTTL', key), was[2] + 0
local held = lives < 0 or lives > keep
call('PEXPIRE', key, keep)
local dead = {}
for _, field in ipairs(call('HKEYS', key)) do
  if string.sub(field, 1, 5) == 'hold:' then
    dead[#dead + 1] = field
  end
end
for i = 1, #dead do
  call('HDEL', key, dead[i])
end
call('HDEL', key, 'ttl', 'keep', 'wake')
if was[3] and string.sub(was[3], 1, 8) == 'SPUBLISH' then
  pcall('SPUBLISH', key, 'free')
elseif was[3] then
  pcall('PUBLISH', key, 'free')
end
return held and 1 or 0
