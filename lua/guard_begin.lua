-- Idempotency: asks to run the work behind a key. The record is a line of seven
-- words. Once the work has run, the result follows the line:
--
--   <state> <fence> <attempt> <end of the lease> <lease> <owner> <fingerprint>
--
-- Times are in milliseconds. The end of the lease is by TIME. Both times are 0 while
-- no owner has the run. A missing fingerprint is a dash. The states:
--
--   pending  its owner runs it, or is about to
--   asking   the same, and it is not known what an earlier owner has done
--   free     nothing was done: the next owner runs it
--   done     it has run; the result follows
--   gone     it has run; the result was not kept
--   doubt    it is not known whether it has run
--
-- An owner whose run is pending gets the same answer again, with a new lease: it
-- cannot know which of its calls arrived first. An owner that has given up does not
-- get the run again: that call was late.
--
-- KEYS[1]  the record
-- ARGV[1]  owner
-- ARGV[2]  fingerprint, or a dash
-- ARGV[3]  terms, separated by spaces; a replay does not need them: lease, in
--          milliseconds; keep, in milliseconds: how long the record outlives this
--          call; what to do with a run whose lease has ended or that is in doubt:
--          retry, reject or reconcile; and "any" if every record matches
-- returns  the record: if it is pending or asking, this owner is to run it; otherwise
--          it is not. Or a number: the milliseconds until the lease of the owner that
--          runs it ends; or 0: the fingerprint is another
-- effects  SET with PX if the state changes or a lease begins again, or if a lease ends
--          later than it can because the clock was set back; PEXPIRE of a record that
--          would live for ever
local key, owner, print, terms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local call, sub = redis.call, string.sub
local record = call('GET', key)
if record and sub(record, 1, 5) == 'done ' then -- a replay, without what the other cases need
  local ends = string.find(record, '\n', 1, true)
  if ends and sub(record, ends - #print - 1, ends - 1) == ' ' .. print and call('PTTL', key) > 0 then
    return record
  end
end

local line = '^(%l+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)\n'
local lease, keep, policy, any = string.match(terms, '^(%d+) (%d+) (%l+)( ?%l*)$')
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
  if any == '' and what ~= '-' and what ~= print then
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
