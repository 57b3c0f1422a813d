-- Fixed window that begins with its first admitted request: a counter whose time to live
-- is the rest of the window.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
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
local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if neap never writes it: if it has a sign,
-- an exponent, a space or a leading 0, or is not exact.
local function whole(text)
  local n = tonumber(text)
  if n and n <= 9007199254740992 and (string.find(text, '^[1-9]%d*$') or text == '0') then
    return n
  end
end

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
