-- Fixed window that begins with its first admitted request: a counter whose time to live
-- is the rest of the window.

-- Returns what is used, how long the window still lasts, and whether that was more than it
-- can be. The time is 0 if no window runs.
local function window_read(key, length)
  local stored = try('GET', key)
  if not stored then
    return 0, 0, false
  end
  local used = whole(stored)
  if not used then
    return nil, stored
  end
  local left = call('PTTL', key)
  if left == 0 then
    return 0, 0, false
  elseif left < 0 or left > length then
    return used, length, true
  end
  return used, left, false
end

-- Adds a cost above 0, and cuts a time to live that was more than it can be. It returns how
-- long the window still lasts.
local function window_charge(key, cost, left, broken, length)
  if left == 0 then
    call('SET', key, cost, 'PX', length)
    return length
  end
  if broken then
    call('PEXPIRE', key, length)
  end
  call('INCRBY', key, cost)
  return left
end

-- Settled.

-- Returns what is used, and how long the window still lasts, after some permits more. longest
-- is how long a window lasts that begins now, and apart the least time between the ends of two
-- windows. While a window runs that a policy with a lease began, only its own estimates are
-- there.
local function window_settle(key, more, told, longest, apart, most, estimates, estimate)
  local stored = try('GET', key)
  local held, left = stored and whole(stored), 0
  if stored and not held then
    return nil, stored
  elseif stored then
    left = call('PTTL', key)
  end
  local broken = left == -1 or left > longest
  if left == -1 then
    left = longest
  end
  local time = ticks(now, 1000)
  local there = left > 0 and estimates and not settled and call('ZSCORE', estimates, estimate)
  local ours = left > 0 and (there or same(time + left, told, apart))
  if there then
    later(function() return call('ZREM', estimates, estimate) end)
  elseif estimates and not settled and (ours or time < ticks(soonest, 1000) + told) then
    more = actual -- the estimate was taken back
  end
  if more > 0 and broken then
    left = longest
  elseif more > 0 and left <= 0 and estimates then
    later(function() return call('DEL', estimates) end)
  end
  local used, change, before = left > 0 and held or 0, 0, left
  if more > 0 then
    change = fitting(most - used, more)
  elseif ours then
    change = max(more, -used)
  end
  used = used + change
  if change ~= 0 and used == 0 then
    later(function() return call('DEL', key) end)
    left = 0
  elseif change < 0 then
    later(function() return call('INCRBY', key, change) end)
  elseif change > 0 then
    later(function() return window_charge(key, change, before, broken, longest) end)
    left = left > 0 and left or longest
  end
  return used, used > 0 and max(left, 0) or 0
end

-- Alone.
--
-- KEYS[1]  the counter
-- ARGV[1]  limit
-- ARGV[2]  window, in milliseconds
-- ARGV[3]  most, the most that can be used
-- ARGV[4]  cost
-- returns  r = used + (most + 1) * rest of the window in milliseconds. used is at most
--          most. Granted: r afterwards; denied: -1 - r
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or longer than the window
local key, limit, length, most, text = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4]
local cost = text + 0 -- Redis takes a text in less time than a number
local used, left, broken = window_read(key, length)
if not used then
  return type(left) == 'table' and left or redis.error_reply('FOREIGN the key holds no record of this policy')
end
if cost > 0 and used + cost > limit then
  if broken then
    call('PEXPIRE', key, length)
  end
  return -1 - (min(used, most) + (most + 1) * left)
elseif cost > 0 then
  left = window_charge(key, text, left, broken, length)
end
return min(used + cost, most) + (most + 1) * left
