-- Locks: takes a lock, or adds a hold of the same owner. The record is a hash. fence is
-- the number given last. While somebody has the lock, there are also owner, ttl, keep and
-- a field hold:<id> for each hold. The lock is held while the record has more than keep
-- left to live. After that the record is there only for its fence. wake says how waiters
-- of other processes want to be told. An owner without a ttl marks a lock that was forced
-- open.
--
-- A hold that is there already is granted again.
--
-- KEYS[1]  the record
-- ARGV[1]  owner: an owner without a name is its own hold, and has no other
-- ARGV[2]  hold
-- ARGV[3]  ttl, in milliseconds
-- ARGV[4]  keep, in milliseconds: how long the fence outlives the lock
-- ARGV[5]  wake, used if this is denied: PUBLISH, SPUBLISH, or empty
-- returns  granted: the fence, which is the same for all holds of an owner; denied: minus
--          the milliseconds until the lock lapses
-- effects  granted: HSET, HDEL of the holds of an owner that let it lapse, PEXPIRE, or
--          HDEL if PEXPIRE fails; denied: HSET of wake, and PEXPIRE of a lock that lives
--          longer than it can because the clock was set back
local key, owner, id, ttl, keep, wake = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local hold, lease = 'hold:' .. id, ttl + 0

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'wake')
local fence, most, left = was[1], was[3], 0
if most then
  local lives = call('PTTL', key)
  most = most + 0
  left = lives - was[4]
  if lives < 0 or left > most then
    left = most
    call('PEXPIRE', key, left + was[4])
  end
  if left > 0 and (was[2] ~= owner or (owner == id) ~= (call('HMGET', key, 'hold:' .. owner)[1] ~= false)) then
    if wake ~= '' and wake ~= was[5] then
      pcall('HSET', key, 'wake', wake)
    end
    return -left
  end
end

local number, longest, stale
if left > 0 then
  number, longest = fence + 0, lease > most and ttl or was[3]
else
  local clock = call('TIME')
  number, longest, left = math.max((fence or 0) + 1, clock[1] * 1000000 + clock[2]), ttl, 0
  if number >= 9007199254740992 or number ~= number then -- 2^53, or no number
    return redis.error_reply('ERR the fence cannot grow: no number of neap is that large')
  end
  if most then
    stale = {}
    for _, field in ipairs(call('HKEYS', key)) do
      if field ~= hold and string.sub(field, 1, 5) == 'hold:' then
        stale[#stale + 1] = field
      end
    end
  end
end

call('HSET', key, 'fence', string.format('%.0f', number), 'owner', owner, 'ttl', longest, 'keep', keep, hold, '')
for i = 1, stale and #stale or 0 do
  call('HDEL', key, stale[i])
end
local kept = pcall('PEXPIRE', key, math.max(left, lease) + keep)
if type(kept) == 'table' then
  -- a script has no rollback; only the fence may stay, if there was one before
  call('HDEL', key, hold)
  if left == 0 then
    call('HDEL', key, 'owner', 'ttl', 'keep', not fence and 'fence' or 'keep')
  end
  return kept
end
return number
