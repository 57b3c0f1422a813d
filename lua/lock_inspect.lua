-- Locks: reports who holds a lock.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- returns  the fence that was last given, or 0; the milliseconds until the lock lapses,
--          or 0; the number of holds; the owner
-- effects  none
local key = KEYS[1]

local call = redis.call
local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'wake')
local fence, left, holds = (was[1] or 0) + 0, 0, 0
if was[3] then
  local lives, most = call('PTTL', key), was[3] + 0
  left = lives - was[4]
  if lives < 0 or left > most then
    left = most
  end
  holds = call('HLEN', key) - (was[5] and 5 or 4)
end
if left <= 0 or holds == 0 then
  return { fence, 0, 0, '' }
end
return { fence, left, holds, was[2] }
