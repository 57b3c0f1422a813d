-- Sliding window of two counters: the running window's count, and the last window's count
-- in proportion to how much of it the sliding window still covers.
--
-- Both are in one number, last * (most + 1) + current. The key lives until the window
-- after the current one ends, so its time to live is the clock: above one window, the
-- current window runs; below, the next one does.

-- Returns both counts, how long the running window still lasts, whether it has no request
-- yet, and whether the time to live was more than it can be.
local function sliding_read(key, length, most)
  local stored = try('GET', key)
  if not stored then
    return 0, 0, 0, true, false
  end
  local counts = whole(stored)
  if not counts then
    return nil, stored
  end
  local left = call('PTTL', key)
  local broken = left < 0 or left > 2 * length
  if broken then
    left = 2 * length
  elseif left == 0 then
    counts = 0
  end
  local current = counts % (most + 1)
  local last = (counts - current) / (most + 1)
  if left <= length then
    return current, 0, left, true, broken
  end
  return last, current, left - length, false, broken
end

-- Returns how many permits are free.
local function sliding_room(last, current, rest, limit, length)
  local room = limit * length - last * rest
  return (room - room % length) / length - current
end

-- Adds a cost above 0, and cuts a time to live that was more than it can be. It returns how
-- long the running window still lasts.
local function sliding_charge(key, cost, last, rest, rolled, broken, length, most)
  if rolled then
    rest = rest > 0 and rest or length
    call('SET', key, last * (most + 1) + cost, 'PX', rest + length)
    return rest
  end
  if broken then
    call('PEXPIRE', key, 2 * length)
  end
  call('INCRBY', key, cost)
  return rest
end

-- Settled.

-- Returns both counts, and how long the running window still lasts, after some permits more.
local function sliding_settle(key, more, told, limit, length, most)
  local last, current, rest, rolled, broken = sliding_read(key, length, most)
  if not last then
    return nil, current
  end
  local ends, back, change = ticks(now, 1000) + rest, 0, 0
  local there = rest > 0 -- something is counted
  if more > 0 then
    change = fitting(sliding_room(last, current, rest, limit, length), more)
    current = current + change
  elseif there and same(ends - length, told, length) then
    back = min(-more, last)
    last = last - back
    if not rolled then
      back = back * (most + 1)
    end
  elseif there and same(ends, told, length) then
    back = min(-more, current)
    current = current - back
  end
  if change > 0 then
    local left = rest
    later(function() return sliding_charge(key, change, last, left, rolled, broken, length, most) end)
    rest = rest > 0 and rest or length
  elseif back > 0 and current == 0 and last == 0 then
    later(function() return call('DEL', key) end)
  elseif back > 0 and current == 0 and not rolled then
    -- the value before this window's first request
    later(function() return call('SET', key, last, 'PX', rest) end)
  elseif back > 0 then
    later(function() return call('INCRBY', key, -back) end)
  end
  return last, current, rest
end

-- Alone.
--
-- KEYS[1]  the counters
-- ARGV[1]  limit
-- ARGV[2]  window, in milliseconds
-- ARGV[3]  the most that a counter can hold
-- ARGV[4]  cost
-- returns  r = (last * (limit + 1) + current) * (window + 1) + rest of the running window
--          in milliseconds. Granted: r afterwards; denied: -1 - r. If a counter is above
--          the limit: {last, current, rest}; if denied, the first is -1 - last
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or longer than two windows
local key, limit, length, most, text = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4]
local cost = text + 0 -- Redis takes a text in less time than a number
local last, current, rest, rolled, broken = sliding_read(key, length, most)
if not last then
  return type(current) == 'table' and current or redis.error_reply('FOREIGN the key holds no record of this policy')
end
local denied = cost > 0 and cost > sliding_room(last, current, rest, limit, length)
if not denied then
  if cost > 0 then
    rest = sliding_charge(key, text, last, rest, rolled, broken, length, most)
  end
  current = current + cost
elseif broken then
  call('PEXPIRE', key, 2 * length)
end
if last > limit or current > limit then
  return {denied and -1 - last or last, current, rest}
end
local packed = (last * (limit + 1) + current) * (length + 1) + rest
return denied and -1 - packed or packed
