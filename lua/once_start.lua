-- Jobs that run once a tick: starts a run. The record is that of a lock, whose owner is
-- its only hold. A field open is there until a run has completed.
--
-- A hold that is there already is granted again, with the fence that it has.
--
-- KEYS[1]  the record of one tick
-- ARGV[1]  hold
-- ARGV[2]  ttl, in milliseconds
-- ARGV[3]  retention, in milliseconds: a tick that is longer ago is late. The record
--          outlives tick and run by twice as much, so it does so even if the clock is set
--          back by the retention
-- ARGV[4]  tick, in milliseconds since 1970
-- ARGV[5]  again, if a run that was begun and not completed may be begun again; or never
-- ARGV[6]  wake, used if this is denied: PUBLISH, SPUBLISH, or empty
-- returns  granted: the fence; denied: 0 if there will be no other run, or minus the
--          milliseconds until the current run lapses; or 'late': the tick is further back
--          than records are kept
-- effects  granted: HSET, PEXPIRE, and HDEL of a dead run's hold; if PEXPIRE fails, HDEL
--          of all that is new; denied: HSET of wake, and PEXPIRE of a record that lives
--          longer than it can, or for ever
local key, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ARGV[1]
local ttl, retention, tick = ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local again, wake = ARGV[5] == 'again', ARGV[6]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if tick + retention <= now then
  return 'late'
end
local keep = 2 * retention + math.max(tick - now, 0)

local was = call('HMGET', key, 'fence', 'owner', 'ttl', 'keep', 'open', 'wake')
local fence, last = was[1], was[2]
if last then
  local lives, most = call('PTTL', key), was[3] + 0
  local left = lives - was[4]
  if lives < 0 or left > most then
    left = most
    call('PEXPIRE', key, left + was[4])
  end
  if last == owner then
    call('PEXPIRE', key, math.max(left, ttl) + was[4])
    return fence + 0
  end
  if left > 0 and again then
    if wake ~= '' and wake ~= was[6] then
      pcall('HSET', key, 'wake', wake)
    end
    return -left
  end
elseif fence and call('PTTL', key) < 0 then
  call('PEXPIRE', key, keep)
end
if fence and not (again and was[5]) then
  return 0
end

local number = math.max((fence or 0) + 1, clock[1] * 1000000 + clock[2])
if number >= 9007199254740992 or number ~= number then -- 2^53, or no number
  return redis.error_reply('ERR the fence cannot grow: no number of neap is that large')
end
local text = string.format('%.0f', number)
call('HSET', key, 'fence', text, 'owner', owner, 'ttl', ttl, 'keep', keep, hold, '', 'open', '')
if last then
  call('HDEL', key, 'hold:' .. last)
end
local kept = pcall('PEXPIRE', key, ttl + keep)
if type(kept) == 'table' then
  call('HDEL', key, hold, 'owner', 'ttl', 'keep')
  if not fence then
    call('HDEL', key, 'fence', 'open')
  end
  return kept
end
return number
