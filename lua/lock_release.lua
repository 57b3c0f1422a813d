-- Locks: ends a hold. After the last hold has ended, the lock is free, or a successor of
-- the same process has it at once. A successor gets it if the hold was the only one,
-- nobody else is known to wait, and the lock had not lapsed. A free lock waits for the
-- first process in line, which is told. Ending a hold needs no memory, so the locks of a
-- full server can be released: all that wait are told then.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  hold; if there is a successor, the only one, of an owner without a name
-- ARGV[2]  the fence that the hold was granted, or 0 if no caller was told
-- ARGV[3]  successor, the hold that may have the lock next; or nothing
-- ARGV[4]  ttl of the successor, in milliseconds; or nothing
-- ARGV[5]  keep of the successor, in milliseconds; or nothing
-- returns  the successor's fence, which is more than 1: ended, and the successor has the
--          lock; 1: ended; 0: ended, but the lock had lapsed; -1: it was granted to
--          another since; -2: the record is gone, or the lock was forced open; -3: the
--          hold is not there, and it was ended before
-- effects  HDEL; then, by pcall, HSET and PEXPIRE for the successor, or else HSET of the
--          line, PEXPIRE of a record that would live for ever, and PUBLISH or SPUBLISH if
--          a waiter asked for it: to the key with the process behind it, or to the key
local key, id, mine, successor, ttl, keeps = KEYS[1], ARGV[1], ARGV[2] + 0, ARGV[3], ARGV[4], ARGV[5]
local hold = 'hold:' .. id

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'owner', 'keep', 'wake', 'fence', hold)
local fence = was[4]
if not was[5] then
  if not fence then
    return -2
  elseif fence + 0 > mine then
    local lives = successor and was[1] == successor and was[2] and call('PTTL', key)
    if lives and lives > was[2] + 0 then -- asked again, or late: it may have been extended since
      call('PEXPIRE', key, math.max(ttl + keeps, lives))
      return fence + 0
    end
    return -1
  end
  return was[1] and not was[2] and -2 or -3
end
local lives, keep, wake = call('PTTL', key), was[2] + 0, was[3]
local lapsed = lives >= 0 and lives <= keep
local last = was[1] == id or call('HLEN', key) == (wake and 6 or 5)
if successor and was[1] == id and not wake and not lapsed then
  local clock = call('TIME')
  local number = math.max(fence + 1, clock[1] * 1000000 + clock[2])
  if number < 9007199254740992 then -- 2^53
    call('HDEL', key, hold)
    hold = 'hold:' .. successor
    local set = pcall('HSET', key, 'fence', number, 'owner', successor, 'ttl', ttl, 'keep', keeps, hold, '')
    if type(set) == 'number' and type(pcall('PEXPIRE', key, ttl + keeps)) == 'number' then
      return number
    end
  end
end

local first, line
if last and wake then
  local clock = call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  for process, time in string.gmatch(wake, ' (%w+) (%d+)') do
    if time + 0 > now then
      line = (line or string.match(wake, '^%u+')) .. ' ' .. process .. ' ' .. (first and time or now)
      first = first or process
    end
  end
end
if last then
  call('HDEL', key, hold, 'owner', 'ttl', 'keep', first and hold or 'wake')
else
  call('HDEL', key, hold)
end
if first and type(pcall('HSET', key, 'wake', line)) == 'table' then
  call('HDEL', key, 'wake')
  first = nil
end

if last and lives < 0 then
  pcall('PEXPIRE', key, keep)
end
local channel = first and key .. ':' .. first or key
if last and wake and string.sub(wake, 1, 8) == 'SPUBLISH' then
  pcall('SPUBLISH', channel, 'free')
elseif last and wake then
  pcall('PUBLISH', channel, 'free')
end
return lapsed and 0 or 1
