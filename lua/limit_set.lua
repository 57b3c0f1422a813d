-- Several policies on one subject, all or nothing: each is read first, and
-- only when every one that is enforced grants is any of them charged, and then
-- each that grants. What the state of each kind means is told in
-- limit_bucket.lua, limit_bucket_fast.lua, limit_bucket_kept.lua, limit_window.lua,
-- limit_sliding.lua, limit_log.lua and limit_calendar.lua.
--
-- Bans of the policies stand behind all of them. The record of one is when the last ban
-- ends, in TIME in milliseconds, how long it was, when the denials that are counted began,
-- and how many they are: end:length:from:count. A ban that begins sooner after the last one
-- ended than one lasts at most is twice as long as that.
--
-- Estimates are costs that a window gives back if their leases end before they are settled. They
-- stand in a sorted set, token:cost by TIME in milliseconds at which the lease ends, which ends just
-- before the window. A window that has no room takes back up to 100 whose lease has ended.
--
-- KEYS[i]  the i-th policy's state; behind all of them, for i > count, a ban's record or
--          a window's estimates
-- ARGV[1]  cost; above a capacity it is denied; -n asks about a cost of n and takes
--          nothing
-- ARGV[2]  how many policies are enforced: the first; the others are shadows
-- ARGV[3]  count, how many policies there are
-- ARGV[6 * i - 2]  kind: bucket, fast, kept, window, sliding, log or calendar
-- ARGV[6 * i - 1]  capacity in units, or limit
-- ARGV[6 * i]      drain, or window; of calendar this and those that follow are TIME
--                  at which three windows begin and the last ends, in milliseconds
-- ARGV[6 * i + 1]  units a permit
-- ARGV[6 * i + 2]  the longest time to live, in milliseconds
-- ARGV[6 * i + 3]  tick of the clock, in microseconds; of kept the time in which the drain
--                  drains
-- ARGV[4 * count + 2 * i + 2]  of a ban or of estimates whose policy it is
-- ARGV[4 * count + 2 * i + 3]  of a ban after:within:first:most: how many denials begin
--                  it, and in milliseconds how long they are counted, how long the first
--                  ban lasts, and how long one lasts at most; of estimates lease/token, the
--                  lease in milliseconds
-- ARGV[4 * count + 2 * keys + 2 * i + 2]  with keys in all, the most that the i-th policy can
--                  hold, in units, if not the capacity; or nothing
-- ARGV[4 * count + 2 * keys + 2 * i + 3]  1 if a request costs it 1, whatever its cost is; or nothing
-- returns  for each policy in turn, the first number -1 - n when it denies:
--          bucket and fast {debt}, kept {charged, now - since, drain, micros},
--          window {used, left},
--          sliding {last, current, rest}, log {used, next, retry, reset}, calendar
--          {used, left, length of the window};
--          afterwards when it was charged, otherwise as it was. For retry a
--          log that was charged has the mark, and one whose limit is below the
--          cost what its limit would have to wait. {TIME in milliseconds}
--          instead, if it is in no window of a calendar: then nothing was done. Behind
--          those of all policies how long each ban still lasts, in milliseconds
-- effects  granted with a cost: those of each kind, SET with PX, INCRBY, RPUSH,
--          LTRIM and PEXPIRE, and before these ZADD and PEXPIRE of an estimate, or ZREM; denied:
--          what a kind repairs of a state that is larger or lives longer than it can, and of a ban
--          SET with PX if its policy denies and no enforced ban lasts: if Redis refuses that,
--          it is not counted; of a window without room INCRBY and ZREM of estimates, and
--          INCRBY again if Redis refuses the ZREM
local asked, enforced, count, keys = math.abs(ARGV[1]), ARGV[2] + 0, ARGV[3] + 0, #KEYS
local given, cost = ARGV[1], math.max(ARGV[1], 0)

local call = redis.call
local now
local granted, banned = true, false
local logs = 0 -- the last one's place
local states = {}

local leases, noted = {}, {} -- of a policy; of a key whether it has estimates
for i = count + 1, keys do
  local of, numbers = ARGV[4 * count + 2 * i + 2] + 0, ARGV[4 * count + 2 * i + 3]
  local length, token = string.match(numbers, '^(%d+)/(.+)$')
  if length then
    leases[of] = {key = KEYS[i], length = length + 0, token = token}
    noted[i] = true
  end
end

-- Takes back estimates whose lease ended, unless it is only asked. How many permits they are of those in use.
local function lapsed(key, estimates, used, only_asked)
  local over = call('ZRANGEBYSCORE', estimates, '-inf', (now - now % 1000) / 1000, 'LIMIT', '0', '100')
  local permits = 0
  for n = 1, #over do
    permits = permits + string.match(over[n], '%d+$')
  end
  permits = math.min(permits, used)
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
  local state = {
    key = key, kind = kind, capacity = capacity, pace = pace, longest = longest, tick = tick,
  }
  states[i] = state
  local most = (ARGV[4 * count + 2 * keys + 2 * i + 2] or capacity) + 0
  local once = ARGV[4 * count + 2 * keys + 2 * i + 3]
  local permits, about = cost, asked
  if once == '1' then
    permits, about = math.min(cost, 1), math.min(asked, 1)
  end
  state.permits, state.cost = permits, permits * unit
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
    longest = till - time
    state.kind, state.longest, state.length = 'window', longest, till - from
  end

  if kind == 'log' then
    logs = i
    state.size = call('LLEN', key)
    local pivot = about > 0 and call('LINDEX', key, math.min(about - capacity, 0) - 1)
    state.denied = about > capacity or pivot and pivot + pace > now
    local oldest, gone = call('LINDEX', key, '0'), 0
    if oldest and oldest + pace <= now then
      local probe, stride, high = 1, 2, state.size
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
    state.gone, state.used = gone, state.size - gone
    if state.used > capacity then
      oldest = call('LINDEX', key, -capacity)
      state.used = capacity
    end
    if state.used > 0 then
      local newest = call('LINDEX', key, '-1') + 0
      state.later = newest > now
      state.next = math.min(oldest, now) + pace - now
      state.reset = math.min(newest, now) + pace - now
      state.retry = state.denied and math.min(pivot, now) + pace - now or 0
    end
    state.left = call('PTTL', key)
  else
    local stored = call('GET', key)
    local left = stored and call('PTTL', key) or 0
    state.left = left
    if kind == 'bucket' or kind == 'fast' then
      local debt = 0
      if stored and kind == 'bucket' then
        debt = left * pace - stored
      elseif stored then
        local colon = string.find(stored, ':', 1, true) or #stored + 1
        local slack = string.sub(stored, colon + 1)
        debt = (string.sub(stored, 1, colon - 1) - (now - now % tick) / tick) * pace - (slack == '' and 0 or slack)
      end
      if debt > most or left == -1 and kind == 'bucket' then
        debt, state.broken = most, true
      end
      state.debt = math.max(debt, 0)
      state.denied = state.debt + state.cost > capacity and cost > 0
    elseif kind == 'kept' then
      local debt, taken, since, by, per, limit = 0, 0, now, pace, tick, most
      if stored then
        taken, since, by, per, limit = string.match(stored, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
        taken, since, by, per, limit = taken + 0, since + 0, by + 0, per + 0, limit + 0
        local drained = (now - since) * by
        if drained < taken * per then
          debt = taken - (drained - drained % per) / per
        end
        if drained < 0 or debt > limit then
          debt, state.broken = math.min(taken, limit), true
        end
        if debt == 0 or state.broken then
          taken, since = debt, now
        end
        state.broken = state.broken or left < 0 or left > limit * per / by / 1000 + 2
        state.anew = by ~= pace or per ~= tick or limit ~= most or drained > 4503599627370496
      end
      state.debt, state.taken, state.since = debt, taken, since
      state.by, state.per, state.limit, state.most = by, per, limit, most
      state.denied = debt + state.cost > capacity and cost > 0
    else
      if left < 0 or left > longest then
        left, state.broken = longest, true
      end
      local used = left > 0 and stored + 0 or 0
      if state.kind == 'window' then
        if leases[i] and used + about > capacity then
          used = used - lapsed(key, leases[i].key, used, cost == 0)
        end
        state.used, state.rest = used, left
        state.denied = used + permits > capacity and cost > 0
      else
        local current = used % (most + 1)
        local last = (used - current) / (most + 1)
        local rest = left - pace
        state.rolled = rest <= 0
        if state.rolled then
          last, current, rest = current, 0, left
        end
        state.last, state.current, state.rest, state.most = last, current, rest, most
        state.denied = cost > 0 and last * rest + (current + permits) * pace > capacity * pace
      end
    end
  end
  if state.denied and i <= enforced then
    granted = false
  end
end

local records = {}
for i = count + 1, keys do
  local key, of = KEYS[i], ARGV[4 * count + 2 * i + 2] + 0
  local stored = not noted[i] and call('GET', key)
  if stored then
    if now == nil then
      local clock = call('TIME')
      now = clock[1] * 1000000 + clock[2]
    end
    local last, length, from, denials = string.match(stored, '^(%d+):(%d+):(%d+):(%d+)$')
    last, length = (last or 0) + 0, (length or 0) + 0
    local rest = last - (now - now % 1000) / 1000
    local left = math.max(math.min(rest, length), 0)
    records[i] = {
      last = last, length = length, from = (from or 0) + 0, denials = (denials or 0) + 0, left = left,
      broken = rest > length or call('PTTL', key) == -1,
    }
    if left > 0 then
      states[of].banned = true
      if of <= enforced then
        granted, banned = false, true
      end
    end
  end
end

local reply = {}
local charged = granted and cost > 0

-- An estimate is noted before it is charged: whatever Redis refuses of it leaves all uncharged.
for i, lease in pairs(leases) do
  local state = states[i]
  if charged and not state.denied and not state.banned then
    local rest = state.rest > 0 and state.rest or state.longest
    local ends, estimate = (now - now % 1000) / 1000 + lease.length, lease.token .. ':' .. given
    call('ZADD', lease.key, ends, estimate)
    -- before Redis 7.2 the clock moves within a script
    local set = redis.pcall('PEXPIRE', lease.key, math.max(rest - 2, 1))
    if set ~= 1 then
      call('ZREM', lease.key, estimate)
      return set
    end
  end
end

local function push(key, entries, from, size)
  -- unpack takes no more than 8,000
  for first = from, size, 4000 do
    call('RPUSH', key, unpack(entries, first, math.min(first + 3999, size)))
  end
end

-- Logs are charged before the others: whatever keeps one from its time to
-- live leaves them uncharged.
for i = 1, logs do
  local state = states[i]
  local key = state.key
  if state.kind == 'log' and cost > 0 then
    if state.later then
      local entries = call('LRANGE', key, '0', '-1')
      for n = 1, state.size do
        entries[n] = math.min(entries[n], now)
      end
      push(key, entries, 1, state.size)
      call('LTRIM', key, state.size, '-1')
      call('PEXPIRE', key, state.longest)
    end
    if charged and not state.denied and not state.banned then
      local entries, permits = {}, state.permits
      for n = 1, permits do
        entries[n] = now
      end
      local few = math.min(permits, 4000)
      push(key, entries, 1, few)
      local set = redis.pcall('PEXPIRE', key, state.longest)
      if set ~= 1 then
        call('LTRIM', key, '0', -1 - few)
        return set
      end
      push(key, entries, few + 1, permits)
    end
  end
end
for i = 1, count do
  local state = states[i]
  local key, kind, longest, denied = state.key, state.kind, state.longest, state.denied
  local charge = charged and not denied and not state.banned
  local repair = cost > 0 and not charge

  if kind == 'bucket' or kind == 'fast' then
    local debt = charge and state.debt + state.cost or state.debt
    if repair and kind == 'fast' then
      state.broken = state.broken or state.left == -1 or state.left > longest
    end
    if charge or repair and state.broken then
      local slack = -debt % state.pace
      local drained = (debt + slack) / state.pace
      if kind == 'bucket' then
        call('SET', key, slack == 0 and '0' or slack, 'PX', drained)
      else
        local gone = (now - now % state.tick) / state.tick + drained
        if state.pace > 1 then
          gone = string.format('%.0f:%.0f', gone, slack)
        end
        call('SET', key, gone, 'PX', longest)
      end
    end
    reply[#reply + 1] = denied and -1 - debt or debt

  elseif kind == 'kept' then
    local debt, taken, since = state.debt, state.taken, state.since
    local by, per, limit = state.by, state.per, state.limit
    if charge then
      if state.anew then
        taken, since = debt, now
      end
      taken, by, per, limit = taken + state.cost, state.pace, state.tick, state.most
    end
    if charge or repair and state.broken then
      local lives = math.ceil((taken * per / by - (now - since)) / 1000) + 1
      call('SET', key, string.format('%.0f:%.0f:%.0f:%.0f:%.0f', taken, since, by, per, limit), 'PX', lives)
    end
    if taken == 0 then
      by, per = state.pace, state.tick
    end
    reply[#reply + 1] = denied and -1 - taken or taken
    reply[#reply + 1] = now - since
    reply[#reply + 1] = by
    reply[#reply + 1] = per

  elseif kind == 'window' or kind == 'sliding' then
    if state.broken and cost > 0 then
      call('PEXPIRE', key, longest)
    end
    if kind == 'window' then
      if charge and state.rest > 0 then
        call('INCRBY', key, state.permits)
      elseif charge then
        call('SET', key, state.permits, 'PX', longest)
        state.rest = longest
      end
      local used = charge and state.used + state.permits or state.used
      reply[#reply + 1] = denied and -1 - used or used
    else
      if charge and state.rolled then
        if state.rest == 0 then
          state.rest = state.pace
        end
        call('SET', key, state.last * (state.most + 1) + state.permits, 'PX', state.rest + state.pace)
      elseif charge then
        call('INCRBY', key, state.permits)
      end
      reply[#reply + 1] = denied and -1 - state.last or state.last
      reply[#reply + 1] = charge and state.current + state.permits or state.current
    end
    reply[#reply + 1] = state.rest
    reply[#reply + 1] = state.length

  elseif kind == 'log' then
    if charge then
      if state.gone > 0 then
        call('LTRIM', key, state.gone, '-1')
      end
      state.used = state.used + state.permits
      state.next, state.retry, state.reset = state.next or state.pace, now, state.pace
    elseif repair and state.size > 0 and (state.left < 0 or state.left > longest) then
      call('PEXPIRE', key, longest)
    end
    reply[#reply + 1] = denied and -1 - state.used or state.used
    reply[#reply + 1] = state.next or 0
    reply[#reply + 1] = state.retry or 0
    reply[#reply + 1] = state.reset or 0
  end
end

-- Denials are counted when all else is done: whatever Redis refuses of it changes no answer.
for i = count + 1, keys do
  local record, of = records[i], ARGV[4 * count + 2 * i + 2] + 0
  local left = record and record.left or 0
  local counts = not noted[i] and cost > 0 and states[of].denied and left == 0 and not banned
  if counts or cost > 0 and record and record.broken then
    local after, within, first, most = string.match(ARGV[4 * count + 2 * i + 3], '(%d+):(%d+):(%d+):(%d+)')
    after, within, first, most = after + 0, within + 0, first + 0, most + 0
    if now == nil then
      local clock = call('TIME')
      now = clock[1] * 1000000 + clock[2]
    end
    local time = (now - now % 1000) / 1000
    local last, length, from, denials, begun = 0, 0, time, 0, left
    if record then
      length, denials = record.length, record.denials
      last, from = math.min(record.last, time + length), math.min(record.from, time)
    end
    if counts then
      if denials == 0 or time - from >= within then
        from, denials = time, 0
      end
      if time - last >= most then
        last, length = 0, 0
      end
      denials = denials + 1
      if denials >= after then
        begun = length > 0 and math.min(2 * length, most) or first
        last, length, from, denials = time + begun, begun, 0, 0
      end
    end
    local text = string.format('%.0f:%.0f:%.0f:%.0f', last, length, from, denials)
    local set = redis.pcall('SET', KEYS[i], text, 'PX', math.max(last + most - time, from + within - time, 1))
    if not set.err then
      left = begun
    end
  end
  if not noted[i] then
    reply[#reply + 1] = left
  end
end

return reply
