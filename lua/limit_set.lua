-- Decides several policies for one subject, all or nothing. It reads every policy's state
-- first. If every enforced policy grants, it charges each policy that grants. The script
-- of each kind describes the state of that kind.
--
-- The bans of the policies follow all policies. The record of a ban is
-- <end>:<length>:<from>:<count>: when the last ban ends, by TIME in milliseconds; how long
-- it was; when the counted denials began; and how many there are. A ban that begins within
-- most after the last one's end is twice as long as that one; most is how long a ban lasts
-- at most.
--
-- The estimates follow the bans. An estimate is a cost that a window gives back if its
-- lease ends before it is settled. Estimates are a sorted set of token:cost, by the TIME
-- in milliseconds at which the lease ends. The set ends just before the window. A window
-- without room takes back up to 100 estimates whose lease has ended.
--
-- KEYS[i]  the i-th policy's state; for i > count the record of a ban, and after all of
--          those a window's estimates
-- ARGV[1]  cost; above a capacity it is denied; -n asks about a cost of n and takes
--          nothing
-- ARGV[2]  how many policies are enforced: these come first; the others are shadows
-- ARGV[3]  count, how many policies there are
-- ARGV[6 * i - 2]  kind: bucket, fast, kept, window, sliding, log or calendar
-- ARGV[6 * i - 1]  capacity in units, or limit
-- ARGV[6 * i]      drain, or window; for a calendar, this and the next three are the
--                  TIMEs at which three windows begin and the last ends, in milliseconds
-- ARGV[6 * i + 1]  units of a permit
-- ARGV[6 * i + 2]  the longest time to live, in milliseconds
-- ARGV[6 * i + 3]  tick of the clock, in microseconds; for kept, the time in which the
--                  drain drains
-- ARGV[4 * count + 2 * i + 2]  for a ban, or for estimates: the index of its policy
-- ARGV[4 * count + 2 * i + 3]  for a ban, after:within:first:most: how many denials begin
--                  it, and in milliseconds how long they are counted, how long the first
--                  ban lasts, and how long a ban lasts at most; for estimates,
--                  lease/token, the lease in milliseconds
-- ARGV[4 * count + 2 * keys + 2 * i + 2]  with keys in all: the most that the i-th policy
--                  can hold, in units, if not the capacity; or nothing
-- ARGV[4 * count + 2 * keys + 2 * i + 3]  1 if a request costs it 1, whatever its cost
--                  is; or nothing
-- returns  for each policy in turn these numbers, as they are after a charge, or else as
--          they were; if the policy denies, the first is -1 - n: bucket and fast {debt},
--          kept {charged, now - since, drain, micros}, window {used, left}, sliding
--          {last, current, rest}, log {used, next, retry, reset}, calendar
--          {used, left, length of the window}. For retry, a log that was charged has the
--          mark; a log whose limit is below the cost has how long a request of its limit
--          would have to wait. After all policies, how long each ban still lasts, in
--          milliseconds. Instead, {TIME in milliseconds} if TIME is in no window of a
--          calendar: then nothing was done
-- effects  granted with a cost: those of each kind, SET with PX, INCRBY, RPUSH, LTRIM and
--          PEXPIRE, and before these ZADD and PEXPIRE of an estimate, or ZREM; denied:
--          the repairs of each kind, to a state that is larger or lives longer than it
--          can. Also denied: for a ban SET with PX, if its policy denies and no enforced
--          ban lasts (if Redis refuses that, the denial is not counted); for a window
--          without room INCRBY and ZREM of estimates, and INCRBY again if Redis refuses
--          the ZREM
local asked, enforced, count, keys = math.abs(ARGV[1]), ARGV[2] + 0, ARGV[3] + 0, #KEYS
local given, cost = ARGV[1], math.max(ARGV[1], 0)

local call, min, max = redis.call, math.min, math.max
local now
local granted, banned = true, false
local states, logs = {}, 0 -- logs is the index of the last log

local bans, leases = keys, {} -- the index of the last ban; the lease of each policy
for i = keys, count + 1, -1 do
  local length, token = string.match(ARGV[4 * count + 2 * i + 3], '^(%d+)/(.+)$')
  if not length then
    break
  end
  local of = ARGV[4 * count + 2 * i + 2] + 0
  bans, leases[of] = i - 1, {key = KEYS[i], length = length + 0, token = token}
end

-- Takes back estimates whose lease has ended. It returns how many of the used permits
-- they have. With only_asked it takes nothing back.
local function lapsed(key, estimates, used, only_asked)
  local over = call('ZRANGEBYSCORE', estimates, '-inf', (now - now % 1000) / 1000, 'LIMIT', '0', '100')
  local permits = 0
  for place = 1, #over do
    permits = permits + string.match(over[place], '%d+$')
  end
  permits = min(permits, used)
  if permits > 0 and not only_asked then
    if type(redis.pcall('INCRBY', key, -permits)) ~= 'number' then
      return 0
    elseif type(redis.pcall('ZREM', estimates, unpack(over))) ~= 'number' then
      call('INCRBY', key, permits)
      return 0
    end
  end
  return permits
end

for i = 1, count do
  local key, kind, capacity = KEYS[i], ARGV[6 * i - 2], ARGV[6 * i - 1] + 0
  local pace, unit, longest, tick = ARGV[6 * i] + 0, ARGV[6 * i + 1] + 0, ARGV[6 * i + 2] + 0, ARGV[6 * i + 3] + 0
  local most = (ARGV[4 * count + 2 * keys + 2 * i + 2] or capacity) + 0
  local permits, about = cost, asked
  local once = ARGV[4 * count + 2 * keys + 2 * i + 3]
  if once == '1' then
    permits, about = min(cost, 1), min(asked, 1)
  end
  local state, denied, broken, length
  if now == nil and (kind == 'fast' or kind == 'kept' or kind == 'log' or kind == 'calendar' or leases[i]) then
    local clock = call('TIME')
    now = clock[1] * 1000000 + clock[2]
  end
  if kind == 'calendar' then
    local time = (now - now % 1000) / 1000
    if time < pace or time >= tick then
      return {time}
    end
    local from, till = pace, unit
    if time >= longest then
      from, till = longest, tick
    elseif time >= unit then
      from, till = unit, longest
    end
    kind, longest, length = 'window', till - time, till - from
  end

  if kind == 'log' then
    logs = i
    local size = call('LLEN', key)
    local pivot = about > 0 and call('LINDEX', key, min(about - capacity, 0) - 1)
    denied = about > capacity or pivot and pivot + pace > now
    local oldest, gone = call('LINDEX', key, '0'), 0
    if oldest and oldest + pace <= now then
      local probe, stride, high = 1, 2, size
      gone = 1
      while gone < high do
        local entry = call('LINDEX', key, probe)
        if entry + pace <= now then
          gone, probe, stride = probe + 1, probe + stride, 2 * stride
        else
          high, probe, oldest = probe, probe, entry
        end
        if probe >= high then
          probe = (gone + high - (gone + high) % 2) / 2
        end
      end
    end
    local used, newest = size - gone, now
    if used > capacity then
      oldest, used = call('LINDEX', key, -capacity), capacity
    end
    if used > 0 then
      newest = call('LINDEX', key, '-1') + 0
    end
    state = {
      kind = kind, denied = denied, pace = pace, longest = longest, permits = permits, size = size, gone = gone,
      used = used, later = newest > now, left = call('PTTL', key),
      next = used > 0 and min(oldest, now) + pace - now or 0,
      retry = used > 0 and denied and min(pivot, now) + pace - now or 0,
      reset = used > 0 and min(newest, now) + pace - now or 0,
    }
  else
    local stored = call('GET', key)
    local left = stored and call('PTTL', key) or 0
    if kind == 'bucket' or kind == 'fast' then
      local debt, units = 0, permits * unit
      if stored and kind == 'bucket' then
        debt = left * pace - stored
      elseif stored then
        local colon = string.find(stored, ':', 1, true) or #stored + 1
        local slack = string.sub(stored, colon + 1)
        debt = (string.sub(stored, 1, colon - 1) - (now - now % tick) / tick) * pace - (slack == '' and 0 or slack)
      end
      broken = debt > most or left == -1 and kind == 'bucket'
      debt = broken and most or max(debt, 0)
      broken = broken or kind == 'fast' and (left == -1 or left > longest)
      denied = debt + units > capacity and cost > 0
      state = {
        kind = kind, denied = denied, pace = pace, longest = longest, tick = tick, broken = broken,
        debt = debt, units = units,
      }
    elseif kind == 'kept' then
      local debt, taken, since, by, per, limit, anew = 0, 0, now, pace, tick, most, false
      if stored then
        taken, since, by, per, limit = string.match(stored, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
        taken, since, by, per, limit = taken + 0, since + 0, by + 0, per + 0, limit + 0
        local drained = (now - since) * by
        if drained < taken * per then
          debt = taken - (drained - drained % per) / per
        end
        if drained < 0 or debt > limit then
          debt, broken = min(taken, limit), true
        end
        if debt == 0 or broken then
          taken, since = debt, now
        end
        broken = broken or left < 0 or left > limit * per / by / 1000 + 2
        anew = by ~= pace or per ~= tick or limit ~= most or drained > 4503599627370496
      end
      denied = debt + permits * unit > capacity and cost > 0
      state = {
        kind = kind, denied = denied, pace = pace, tick = tick, most = most, units = permits * unit, broken = broken,
        anew = anew, debt = debt, taken = taken, since = since, by = by, per = per, limit = limit,
      }
    else
      broken = left < 0 or left > longest
      if broken then
        left = longest
      end
      local used = left > 0 and stored + 0 or 0
      if kind == 'window' then
        if leases[i] and used + about > capacity then
          used = used - lapsed(key, leases[i].key, used, cost == 0)
        end
        denied = used + permits > capacity and cost > 0
        state = {
          kind = kind, denied = denied, longest = longest, permits = permits, broken = broken,
          used = used, rest = left, length = length,
        }
      else
        local current, rest = used % (most + 1), left - pace
        local last, rolled = (used - current) / (most + 1), rest <= 0
        if rolled then
          last, current, rest = current, 0, left
        end
        denied = cost > 0 and last * rest + (current + permits) * pace > capacity * pace
        state = {
          kind = kind, denied = denied, pace = pace, longest = longest, most = most, permits = permits, broken = broken,
          last = last, current = current, rest = rest, rolled = rolled,
        }
      end
    end
  end
  states[i] = state
  if denied and i <= enforced then
    granted = false
  end
end

local records -- nil if no ban has a record and no denial is to be counted
for i = count + 1, bans do
  local of = ARGV[4 * count + 2 * i + 2] + 0
  local stored = call('GET', KEYS[i])
  if stored or states[of].denied then
    if now == nil then
      local clock = call('TIME')
      now = clock[1] * 1000000 + clock[2]
    end
    local time = (now - now % 1000) / 1000
    local last, length, from, denials = string.match(stored or '', '^(%d+):(%d+):(%d+):(%d+)$')
    last, length, from, denials = (last or 0) + 0, (length or 0) + 0, (from or 0) + 0, (denials or 0) + 0
    local broken = last - time > length or from > time or stored and call('PTTL', KEYS[i]) == -1
    last, from = min(last, time + length), min(from, time)
    local left = max(last - time, 0)
    records = records or {}
    records[i] = {last = last, length = length, from = from, denials = denials, left = left, broken = broken}
    if left > 0 then
      states[of].banned = true
      if of <= enforced then
        granted, banned = false, true
      end
    end
  end
end

local charged = granted and cost > 0

-- An estimate is stored before it is charged. If Redis refuses to store it, nothing is
-- charged.
for i, lease in pairs(leases) do
  local state = states[i]
  if charged and not state.denied and not state.banned then
    local rest = state.rest > 0 and state.rest or state.longest
    local ends, estimate = (now - now % 1000) / 1000 + lease.length, lease.token .. ':' .. given
    call('ZADD', lease.key, ends, estimate)
    -- A key lasts until its end is over, and before Redis 7.2 the clock moves within a
    -- script. So none of these estimates is there in the next window.
    local set = redis.pcall('PEXPIRE', lease.key, max(rest - 2, 0))
    if set ~= 1 then
      call('ZREM', lease.key, estimate)
      return set
    end
  end
end

-- Logs are charged before the others: if a log cannot get its time to live, the others
-- are not charged.
for i = 1, logs do
  local key, state = KEYS[i], states[i]
  if state.kind == 'log' and cost > 0 then
    local pace, longest, size, permits = state.pace, state.longest, state.size, state.permits
    local function push(entries, from, till)
      -- unpack takes at most 8,000 values
      for first = from, till, 4000 do
        call('RPUSH', key, unpack(entries, first, min(first + 3999, till)))
      end
    end
    if state.later then
      local entries = call('LRANGE', key, '0', '-1')
      for place = 1, size do
        entries[place] = min(entries[place], now)
      end
      push(entries, 1, size)
      call('LTRIM', key, size, '-1')
      call('PEXPIRE', key, longest)
    end
    if charged and not state.denied and not state.banned then
      local entries, few = {}, min(permits, 4000)
      for place = 1, permits do
        entries[place] = now
      end
      push(entries, 1, few)
      local set = redis.pcall('PEXPIRE', key, longest)
      if set ~= 1 then
        call('LTRIM', key, '0', -1 - few)
        return set
      end
      push(entries, few + 1, permits)
      if state.gone > 0 then
        call('LTRIM', key, state.gone, '-1')
      end
      state.next, state.retry, state.reset = state.used > 0 and state.next or pace, now, pace
      state.used = state.used + permits
    elseif size > 0 and (state.left < 0 or state.left > longest) then
      call('PEXPIRE', key, longest)
    end
  end
end

local reply, n = {}, 0
for i = 1, count do
  local key, state = KEYS[i], states[i]
  local kind, denied, broken = state.kind, state.denied, state.broken and cost > 0
  local charge = charged and not denied and not state.banned

  if kind == 'window' then
    local used, rest = charge and state.used + state.permits or state.used, state.rest
    if broken then
      call('PEXPIRE', key, state.longest)
    end
    if charge and rest > 0 then
      call('INCRBY', key, state.permits)
    elseif charge then
      rest = state.longest
      call('SET', key, used, 'PX', rest)
    end
    reply[n + 1], reply[n + 2], reply[n + 3] = denied and -1 - used or used, rest, state.length
    n = state.length and n + 3 or n + 2

  elseif kind == 'bucket' or kind == 'fast' then
    local debt = charge and state.debt + state.units or state.debt
    if charge or broken then
      local slack = -debt % state.pace
      local drained = (debt + slack) / state.pace
      if kind == 'bucket' then
        call('SET', key, slack == 0 and '0' or slack, 'PX', drained)
      else
        local gone = (now - now % state.tick) / state.tick + drained
        if state.pace > 1 then
          gone = string.format('%.0f:%.0f', gone, slack)
        end
        call('SET', key, gone, 'PX', state.longest)
      end
    end
    n = n + 1
    reply[n] = denied and -1 - debt or debt

  elseif kind == 'kept' then
    local taken, since, by, per, limit = state.taken, state.since, state.by, state.per, state.limit
    if charge then
      if state.anew then
        taken, since = state.debt, now
      end
      taken, by, per, limit = taken + state.units, state.pace, state.tick, state.most
    end
    if charge or broken then
      local lives = math.ceil((taken * per / by - (now - since)) / 1000) + 1
      call('SET', key, string.format('%.0f:%.0f:%.0f:%.0f:%.0f', taken, since, by, per, limit), 'PX', lives)
    end
    if taken == 0 then
      by, per = state.pace, state.tick
    end
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = denied and -1 - taken or taken, now - since, by, per
    n = n + 4

  elseif kind == 'sliding' then
    local last, rest = state.last, state.rest
    local current = charge and state.current + state.permits or state.current
    if broken then
      call('PEXPIRE', key, state.longest)
    end
    if charge and state.rolled then
      rest = rest > 0 and rest or state.pace
      call('SET', key, last * (state.most + 1) + current, 'PX', rest + state.pace)
    elseif charge then
      call('INCRBY', key, state.permits)
    end
    reply[n + 1], reply[n + 2], reply[n + 3] = denied and -1 - last or last, current, rest
    n = n + 3

  else
    local used = denied and -1 - state.used or state.used
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = used, state.next, state.retry, state.reset
    n = n + 4
  end
end

-- Denials are counted when all else is done. If Redis refuses to count one, no answer
-- changes.
for i = count + 1, bans do
  local record = records and records[i]
  local left = record and record.left or 0
  local counts = left == 0 and not banned and states[ARGV[4 * count + 2 * i + 2] + 0].denied
  if record and cost > 0 and (counts or record.broken) then
    local after, within, first, most = string.match(ARGV[4 * count + 2 * i + 3], '(%d+):(%d+):(%d+):(%d+)')
    after, within, first, most = after + 0, within + 0, first + 0, most + 0
    local time = (now - now % 1000) / 1000
    local last, length, from, denials, begun = record.last, record.length, record.from, record.denials, left
    if counts then
      if denials == 0 or time - from >= within then
        from, denials = time, 0
      end
      if time - last >= most then
        last, length = 0, 0
      end
      denials = denials + 1
      if denials >= after then
        begun = length > 0 and min(2 * length, most) or first
        last, length, from, denials = time + begun, begun, 0, 0
      end
    end
    local text = string.format('%.0f:%.0f:%.0f:%.0f', last, length, from, denials)
    local set = redis.pcall('SET', KEYS[i], text, 'PX', max(last + most - time, from + within - time, 1))
    if not set.err then
      left = begun
    end
  end
  reply[n + i - count] = left
end

return reply
