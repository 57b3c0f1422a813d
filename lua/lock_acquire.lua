-- Locks: takes a lock, or adds a hold of the same owner. The record is a hash. fence is
-- the number given last. While somebody has the lock, there are also owner, ttl, keep and
-- a field hold:<id> for each hold. The lock is held while the record has more than keep
-- left to live. After that the record is there only for its fence. An owner without a ttl
-- marks a lock that was forced open.
--
-- wake is a field for the processes that wait: how they want to be told, and then their
-- line, PUBLISH <process> <time> <process> <time> ... The first in line has the lock next.
-- The time is when the place of a process ends, in milliseconds; for the first in line of a
-- free lock, it is when the lock became free. Without a line, all are told.
--
-- A hold that is there already is granted again.
--
-- KEYS[1]  the record
-- ARGV[1]  owner: an owner without a name is its own hold, and has no other
-- ARGV[2]  hold
-- ARGV[3]  ttl, in milliseconds
-- ARGV[4]  keep, in milliseconds: how long the fence outlives the lock
-- ARGV[5]  wake, used if this is denied: PUBLISH, SPUBLISH, or empty
-- ARGV[6]  place, or nothing
--          A place is the name of the process, and two times in milliseconds: how long its
--          place lasts, and how long a free lock waits for the first in line. A caller
--          without a place does not heed the line.
-- returns  granted: the fence, which is the same for all holds of an owner; denied: minus
--          the milliseconds until the lock lapses, or until it waits no more for the
--          first in line
-- effects  granted: HSET, HDEL of the holds of an owner that let it lapse and of a line
--          that ends, PEXPIRE, or HDEL if PEXPIRE fails; denied: HSET of wake, and
--          PEXPIRE of a lock that lives longer than it can because the clock was set back
local key, owner, id, ttl, keep, wake = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local hold, lease, place = 'hold:' .. id, ttl + 0, ARGV[6] or ''

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'wake')
local fence, most, line, left, denied = was[1], was[3], was[5], 0, false
if most then
  local lives = call('PTTL', key)
  most = most + 0
  left = lives - was[4]
  if lives < 0 or left > most then
    left = most
    call('PEXPIRE', key, left + was[4])
  end
  if left > 0 and (was[2] ~= owner or (owner == id) ~= (call('HMGET', key, 'hold:' .. owner)[1] ~= false)) then
    denied = left
  end
end

local held, clock, now = left > 0, nil, nil
if not held or denied and wake ~= '' then
  clock = call('TIME')
  now = clock[1] * 1000 + math.floor(clock[2] / 1000)
end
local process, stays, waits, first, since
if line or denied and wake ~= '' then
  process, stays, waits = string.match(place, '^(%w+) (%d+) (%d+)$')
end
if line and not held then
  first, since = string.match(line, '^%u+ (%w+) (%d+)')
  if first and was[2] then
    first = nil -- it lapsed, so nobody was told
  elseif first and first ~= process and since + 0 <= now and now - since < (waits or 0) + 0 then
    denied = waits - (now - since)
  end
end

if denied then
  local places, n, mine = wake, 0, not process
  for other, time in string.gmatch(process and wake ~= '' and line or '', ' (%w+) (%d+)') do
    if other == process then
      mine = true
      if time - now < stays / 2 or time - now > stays + 0 then -- or else the record need not change
        time = now + stays
      end
    end
    if time + 0 > now or other == first then
      places, n = places .. ' ' .. other .. ' ' .. time, n + 1
    end
  end
  if wake ~= '' and not (process and line and string.match(line, '^%u+$')) then
    if not mine then
      places = places .. ' ' .. process .. ' ' .. now + stays
    end
    if places ~= line then
      pcall('HSET', key, 'wake', (mine or n < 64) and places or wake)
    end
  end
  return -denied
end

local number, longest, stale
if held then
  number, longest = fence + 0, lease > most and ttl or was[3]
else
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

local text, rest = string.format('%.0f', number), nil
if line and first and first ~= process then -- it did not come, and others may have gone too: all are told
  rest = string.match(line, '^%u+')
elseif line and process and not held then
  local gone
  rest, gone = string.gsub(line, ' ' .. process .. ' %d+', '')
  if gone > 0 and string.match(rest, '^%u+$') then
    call('HDEL', key, 'wake')
    rest = nil
  end
end
if rest then
  call('HSET', key, 'fence', text, 'owner', owner, 'ttl', longest, 'keep', keep, hold, '', 'wake', rest)
else
  call('HSET', key, 'fence', text, 'owner', owner, 'ttl', longest, 'keep', keep, hold, '')
end
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
