-- Several policies on one subject, all or nothing: each is read first, and
-- only when every one that is enforced grants is any of them charged, and then
-- each that grants. What the state of each kind means is told in
-- limit_bucket.lua, limit_bucket_fast.lua, limit_window.lua, limit_sliding.lua
-- and limit_log.lua.
--
-- KEYS[i]  the i-th policy's state
-- ARGV[1]  cost; above a capacity it is denied
-- ARGV[2]  how many policies are enforced: the first; the others are shadows
-- ARGV[6 * i - 3]  kind: bucket, fast, window, sliding or log
-- ARGV[6 * i - 2]  capacity in units, or limit
-- ARGV[6 * i - 1]  drain, or window
-- ARGV[6 * i]      units a permit
-- ARGV[6 * i + 1]  the longest time to live, in milliseconds
-- ARGV[6 * i + 2]  tick of the clock, in microseconds
-- returns  for each policy in turn, the first number -1 - n when it denies:
--          bucket and fast {debt}, window {used, left},
--          sliding {last, current, rest}, log {used, next, retry, reset};
--          afterwards when it was charged, otherwise as it was. For retry a
--          log that was charged has the mark, and one whose limit is below the
--          cost what its limit would have to wait
-- effects  granted with a cost: those of each kind, SET with PX, INCRBY, RPUSH,
--          LTRIM and PEXPIRE; denied: what a kind repairs of a state that is
--          larger or lives longer than it can
local cost, enforced, count = ARGV[1] + 0, ARGV[2] + 0, #KEYS

local call = redis.call
local now

local function get(key)
  local stored = call('GET', key)
  return stored, stored and call('PTTL', key) or 0
end

-- Buckets: what is owed, and when it has drained.
local function owe(s, debt, broken)
  if debt > s.capacity or broken then
    debt, s.broken = s.capacity, true
  end
  s.debt = math.max(debt, 0)
  s.denied = s.debt + s.cost > s.capacity and cost > 0
end

local function drain(s, debt)
  local slack = -debt % s.pace
  return (debt + slack) / s.pace, slack
end

-- Windows: a counter and the time to live that is its clock.
local function counter(s)
  local stored, left = get(s.key)
  if left < 0 or left > s.longest then
    left, s.broken = s.longest, true
  end
  return left > 0 and stored + 0 or 0, left
end

local function mend(s)
  if s.broken and cost > 0 then
    call('PEXPIRE', s.key, s.longest)
  end
end

-- Logs: unpack takes no more than 8,000.
local function push(key, entries, from, size)
  for first = from, size, 4000 do
    call('RPUSH', key, unpack(entries, first, math.min(first + 3999, size)))
  end
end

-- Each kind reads its state and says whether it denies; it charges it or repairs
-- it, and answers with its numbers.
local kinds = {}

kinds.bucket = {
  read = function(s)
    local stored, left = get(s.key)
    owe(s, stored and left * s.pace - stored or 0, left == -1)
  end,
  write = function(s, charge, repair)
    local debt = charge and s.debt + s.cost or s.debt
    if charge or repair and s.broken then
      local drained, slack = drain(s, debt)
      call('SET', s.key, slack == 0 and '0' or slack, 'PX', drained)
    end
    return debt
  end,
}

kinds.fast = {
  clock = true,
  read = function(s)
    local stored, left = get(s.key)
    s.left = left
    local debt = 0
    if stored then
      local colon = string.find(stored, ':', 1, true) or #stored + 1
      local slack = string.sub(stored, colon + 1)
      debt = (string.sub(stored, 1, colon - 1) - (now - now % s.tick) / s.tick) * s.pace - (slack == '' and 0 or slack)
    end
    owe(s, debt, false)
  end,
  write = function(s, charge, repair)
    local debt = charge and s.debt + s.cost or s.debt
    if charge or repair and (s.broken or s.left == -1 or s.left > s.longest) then
      local drained, slack = drain(s, debt)
      local gone = (now - now % s.tick) / s.tick + drained
      if s.pace > 1 then
        gone = string.format('%.0f:%.0f', gone, slack)
      end
      call('SET', s.key, gone, 'PX', s.longest)
    end
    return debt
  end,
}

kinds.window = {
  read = function(s)
    s.used, s.rest = counter(s)
    s.denied = s.used + cost > s.capacity and cost > 0
  end,
  write = function(s, charge)
    mend(s)
    if charge and s.rest > 0 then
      call('INCRBY', s.key, cost)
    elseif charge then
      call('SET', s.key, cost, 'PX', s.longest)
      s.rest = s.longest
    end
    return charge and s.used + cost or s.used, s.rest
  end,
}

kinds.sliding = {
  read = function(s)
    local used, left = counter(s)
    local current = used % (s.capacity + 1)
    local last, rest = (used - current) / (s.capacity + 1), left - s.pace
    s.rolled = rest <= 0
    if s.rolled then
      last, current, rest = current, 0, left
    end
    s.last, s.current, s.rest = last, current, rest
    s.denied = cost > 0 and last * rest + (current + cost) * s.pace > s.capacity * s.pace
  end,
  write = function(s, charge)
    mend(s)
    if charge and s.rolled then
      if s.rest == 0 then
        s.rest = s.pace
      end
      call('SET', s.key, s.last * (s.capacity + 1) + cost, 'PX', s.rest + s.pace)
    elseif charge then
      call('INCRBY', s.key, cost)
    end
    return s.last, charge and s.current + cost or s.current, s.rest
  end,
}

kinds.log = {
  clock = true,
  read = function(s)
    local key, pace = s.key, s.pace
    s.size = call('LLEN', key)
    local pivot = cost > 0 and call('LINDEX', key, math.min(cost - s.capacity, 0) - 1)
    s.denied = cost > s.capacity or pivot and pivot + pace > now
    local oldest, gone = call('LINDEX', key, '0'), 0
    if oldest and oldest + pace <= now then
      local probe, stride, high = 1, 2, s.size
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
    s.gone, s.used = gone, s.size - gone
    if s.used > 0 then
      local newest = call('LINDEX', key, '-1') + 0
      s.later = newest > now
      s.next = math.min(oldest, now) + pace - now
      s.reset = math.min(newest, now) + pace - now
      s.retry = s.denied and math.min(pivot, now) + pace - now or 0
    end
    s.left = call('PTTL', key)
  end,
  -- first appends the entries; an error of its PEXPIRE is returned.
  first = function(s, charge)
    local key = s.key
    if s.later then
      local entries = call('LRANGE', key, '0', '-1')
      for n = 1, s.size do
        entries[n] = math.min(entries[n], now)
      end
      push(key, entries, 1, s.size)
      call('LTRIM', key, s.size, '-1')
      call('PEXPIRE', key, s.longest)
    end
    if charge then
      local entries = {}
      for n = 1, cost do
        entries[n] = now
      end
      local few = math.min(cost, 4000)
      push(key, entries, 1, few)
      local set = redis.pcall('PEXPIRE', key, s.longest)
      if set ~= 1 then
        call('LTRIM', key, '0', -1 - few)
        return set
      end
      push(key, entries, few + 1, cost)
    end
  end,
  write = function(s, charge, repair)
    if charge then
      if s.gone > 0 then
        call('LTRIM', s.key, s.gone, '-1')
      end
      s.used = s.used + cost
      s.next, s.retry, s.reset = s.next or s.pace, now, s.pace
    elseif repair and s.size > 0 and (s.left < 0 or s.left > s.longest) then
      call('PEXPIRE', s.key, s.longest)
    end
    return s.used, s.next or 0, s.retry or 0, s.reset or 0
  end,
}

local states = {}
local granted = true
local logs = 0 -- the last one's place

for i = 1, count do
  local kind, capacity, pace = kinds[ARGV[6 * i - 3]], ARGV[6 * i - 2] + 0, ARGV[6 * i - 1] + 0
  local unit, longest, tick = ARGV[6 * i] + 0, ARGV[6 * i + 1] + 0, ARGV[6 * i + 2] + 0
  local s = {
    key = KEYS[i], kind = kind, capacity = capacity, pace = pace, cost = cost * unit, longest = longest, tick = tick,
  }
  states[i] = s
  if now == nil and kind.clock then
    local clock = call('TIME')
    now = clock[1] * 1000000 + clock[2]
  end
  kind.read(s)
  if kind.first then
    logs = i
  end
  if s.denied and i <= enforced then
    granted = false
  end
end

local charged = granted and cost > 0

-- Logs are charged before the others: whatever keeps one from its time to
-- live leaves them uncharged.
for i = 1, logs do
  local s = states[i]
  if s.kind.first and cost > 0 then
    local failed = s.kind.first(s, charged and not s.denied)
    if failed then
      return failed
    end
  end
end

local reply = {}
for i = 1, count do
  local s = states[i]
  local charge = charged and not s.denied
  local numbers = {s.kind.write(s, charge, cost > 0 and not charge)}
  if s.denied then
    numbers[1] = -1 - numbers[1]
  end
  for n = 1, #numbers do
    reply[#reply + 1] = numbers[n]
  end
end

return reply
