-- Calendar window: a counter that lives until its window ends, as limits/window.lua
-- describes it. The client says where windows begin and end, and the server's clock picks
-- one. Before Redis 7.2 the clock moves within a script. If a window ends between TIME and
-- GET, one request is counted in neither window, or for a millisecond in both.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
--
-- KEYS[1]  the counter
-- ARGV[1]  limit
-- ARGV[2]  TIME at which the first of three windows begins, in milliseconds
-- ARGV[3]  TIME at which the second begins, in milliseconds
-- ARGV[4]  TIME at which the third begins, in milliseconds
-- ARGV[5]  TIME at which the third ends, in milliseconds
-- ARGV[6]  most, the most that can be used
-- ARGV[7]  cost
-- returns  r = 3 * (used + (most + 1) * rest of the window in milliseconds) + window.
--          used is at most most, and window is 0 to 2 for the first to the third window.
--          Granted: r afterwards; denied: -1 - r. If TIME is in none of the windows:
--          {TIME in milliseconds}
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or reaches beyond the window's end
local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if neap never writes it: if it has a sign,
-- an exponent, a space or a leading 0, or is not exact.
local function whole(text)
  local n = tonumber(text)
  if n and n <= 9007199254740992 and (string.find(text, '^[1-9]%d*$') or text == '0') then
    return n
  end
end
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- in microseconds

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


-- Returns which of three windows runs, when it began and when it ends, or nil.
local function calendar_at(time, first, second, third, last)
  if time >= last or time < first then
    return nil
  elseif time >= third then
    return 2, third, last
  elseif time >= second then
    return 1, second, third
  end
  return 0, first, second
end

local key, limit, most, text, time = KEYS[1], ARGV[1] + 0, ARGV[6] + 0, ARGV[7], (now - now % 1000) / 1000
local cost = text + 0 -- Redis takes a text in less time than a number
local which, _, till = calendar_at(time, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0)
if not which then
  return {time}
end
local used, left, broken = window_read(key, till - time)
if not used then
  return type(left) == 'table' and left or redis.error_reply('FOREIGN the key holds no record of this policy')
end
if cost > 0 and used + cost > limit then
  if broken then
    call('PEXPIRE', key, till - time)
  end
  return -1 - (3 * (min(used, most) + (most + 1) * left) + which)
elseif cost > 0 then
  left = window_charge(key, text, left, broken, till - time)
end
return 3 * (min(used + cost, most) + (most + 1) * left) + which
