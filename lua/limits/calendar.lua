-- Calendar window: a counter that lives until its window ends, as limits/window.lua
-- describes it. The client says where windows begin and end, and the server's clock picks
-- one. Before Redis 7.2 the clock moves within a script. If a window ends between TIME and
-- GET, one request is counted in neither window, or for a millisecond in both.

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

-- Alone.
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
