-- Jobs that run once a tick: starts a run. The record is that of a lock, whose
-- owner is its only hold; a field open is there until a run has completed.
--
-- A hold that is there already is granted again.
--
-- KEYS[1]  the record of one tick
-- ARGV[1]  hold
-- ARGV[2]  ttl, in milliseconds
-- ARGV[3]  keep, in milliseconds: how long the record outlives tick and run
-- ARGV[4]  tick, in milliseconds since 1970
-- ARGV[5]  again, where a run that was begun and not completed may be begun
--          anew; or never
-- ARGV[6]  wake, for who is denied: PUBLISH, SPUBLISH, or empty
-- returns  granted: the fence; denied: 0 when there will be no other run, or
--          minus the milliseconds until the run that is on lapses; or 'late':
--          the tick is further back than records are kept
-- effects  granted: HSET, PEXPIRE, and HDEL of a dead run's hold, or where
--          PEXPIRE fails HDEL of all that is new; denied: HSET of wake
local key, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ARGV[1]
local ttl, keep, tick, again, wake = ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] == 'again', ARGV[6]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if tick + keep <= now then
  return 'late'
end
keep = keep + math.max(tick - now, 0)

local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'open', 'wake')
local fence, last, number = was[1], was[2], 0
if last then
  local lives, most = call('PTTL', key), was[3] + 0
  local left = lives - was[4]
  if lives < 0 or left > most then
    left = most
    call('PEXPIRE', key, left + was[4])
  end
  if left > 0 and last == owner then
    return fence + 0
  end
  if left > 0 and again then
    if wake ~= '' and wake ~= was[6] then
      pcall('HSET', key, 'wake', wake)
    end
    return -left
  end
end
if fence and not (again and was[5]) then
  return 0
end

number = math.max((fence or 0) + 1, clock[1] * 1000000 + clock[2])
call('HSET', key, 'fence', string.format('%.0f', number), 'owner', owner, 'ttl', ttl, 'keep', keep, 'open', '', hold, '')
local kept = pcall('PEXPIRE', key, ttl + keep)
if type(kept) == 'table' then
  call('HDEL', key, hold, 'owner', 'ttl', 'keep')
  if not fence then
    call('HDEL', key, 'fence', 'open')
  end
  return kept
end
if last then
  call('HDEL', key, 'hold:' .. last)
end
return number
