-- Idempotency: asks to run what a key stands for. The record is a line of seven
-- words and, once it has run, the result behind that line:
--
--   <state> <fence> <attempt> <end of the lease> <lease> <owner> <fingerprint>
--
-- Times are in milliseconds, the end of the lease by TIME; both are 0 when
-- nobody has it. A fingerprint that is not there is a dash. The states:
--
--   pending  its owner is to run it, or runs it
--   asking   the same, and what became of an earlier owner is not known
--   free     nothing was done: the next one runs it
--   done     it has run; the result follows
--   gone     it has run; the result was not kept
--   doubt    whether it has run is not known
--
-- An owner that is pending already is answered as before, and its lease begins
-- anew, since it does not know which of its questions was heard first; one that
-- has given up is not given it again: his question was late.
--
-- KEYS[1]  the record
-- ARGV[1]  owner
-- ARGV[2]  fingerprint, or a dash
-- ARGV[3]  terms, with a space between them, which a replay has no use for:
--          lease, in milliseconds; keep, in milliseconds: how long the record
--          outlives this; and what becomes of a run whose lease has ended, or
--          that is in doubt: retry, reject or reconcile
-- returns  the record: pending or asking: it is this owner's to run; otherwise
--          it is not. Or, as a number, the milliseconds until the
--          lease of who is running it ends; or 0: the fingerprint is another
-- effects  SET with PX where the state changes or the lease begins anew, or where
--          its end is further away than it can be, since the clock was set back;
--          PEXPIRE of a record that would live for ever
local key, owner, print, terms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local call, sub = redis.call, string.sub
local record = call('GET', key)
if record and sub(record, 1, 5) == 'done ' then -- a replay, without what the others need
  local ends = string.find(record, '\n', 1, true)
  if ends and sub(record, ends - #print - 1, ends - 1) == ' ' .. print and call('PTTL', key) > 0 then
    return record
  end
end

local line = '^(%l+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)\n'
local lease, keep, policy = string.match(terms, '^(%d+) (%d+) (%l+)$')
lease, keep = lease + 0, keep + 0
local fence, attempt, becomes = 0, 0, 'pending'
local now, micros

local function clock()
  local time = call('TIME')
  micros = time[1] * 1000000 + time[2]
  now = (micros - micros % 1000) / 1000
end

local function write(state, number, count, ends, span, who, what)
  record = string.format('%s %.0f %.0f %.0f %.0f %s %s\n', state, number, count, ends, span, who, what)
  call('SET', key, record, 'PX', keep)
end

if record then
  local state, number, count, ends, span, who, what = string.match(record, line)
  if not state then
    return redis.error_reply('ERR the key holds no record of neap')
  end
  fence, attempt = number + 0, count + 0
  local running = state == 'pending' or state == 'asking'
  if who == owner then
    if running then
      clock()
      write(state, fence, attempt, now + lease, lease, owner, what)
    end
    return record
  end
  if call('PTTL', key) < 0 then
    call('PEXPIRE', key, keep)
  end
  if what ~= '-' and what ~= print then
    return 0
  end
  if running then
    clock()
    local left, most = ends - now, span + 0
    if left > most then
      left = most
      write(state, fence, attempt, now + most, most, who, what)
    end
    if left > 0 then
      return left
    end
    if policy == 'reject' then
      write('doubt', fence, attempt, 0, 0, who, what)
      return record
    elseif policy == 'reconcile' then
      becomes = 'asking'
    end
  elseif state == 'doubt' and policy == 'reconcile' then
    becomes = 'asking'
  elseif state ~= 'free' then
    return record
  end
end

if not now then
  clock()
end
fence = math.max(fence + 1, micros)
if fence >= 9007199254740992 or fence ~= fence then -- 2^53, or no number
  return redis.error_reply('ERR the fence cannot grow: no number of neap is that large')
end
write(becomes, fence, attempt + 1, now + lease, lease, owner, print)
return record
