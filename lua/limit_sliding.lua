-- Sliding window of two counters: the running window's count, and the last window's count
-- in proportion to how much of it the sliding window still covers.
--
-- Both are in one number, last * (most + 1) + current. The key lives until the window
-- after the current one ends, so its time to live is the clock: above one window, the
-- current window runs; below, the next one does.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
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
local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if neap never writes it: if it has a sign,
-- an exponent, a space or a leading 0, or is not exact.
local function whole(text)
  local n = tonumber(text)
  if n and n <= 9007199254740992 and (string.find(text, '^[1-9]%d*$') or text == '0') then
    return n
  end
end

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
