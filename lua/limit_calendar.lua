-- Calendar window: a counter that lives until its window ends. The client says where
-- windows begin and end, and the server's clock picks one. Before Redis 7.2 the clock
-- moves within a script. If a window ends between TIME and GET, one request is counted in
-- neither window, or for a millisecond in both.
--
-- KEYS[1]  the counter
-- ARGV[1]  cost
-- ARGV[2]  limit
-- ARGV[3]  TIME at which the first of three windows begins, in milliseconds
-- ARGV[4]  TIME at which the second begins, in milliseconds
-- ARGV[5]  TIME at which the third begins, in milliseconds
-- ARGV[6]  TIME at which the third ends, in milliseconds
-- ARGV[7]  most, the most that can be used, if not the limit; or nothing
-- returns  r = 3 * (used + (most + 1) * rest of the window in milliseconds) + window.
--          used is at most most, and window is 0 to 2 for the first to the third window.
--          Granted: r afterwards; denied: -1 - r. If TIME is in none of the windows:
--          {TIME in milliseconds}
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or reaches beyond the window's end
local key = KEYS[1]
local cost, limit, first, second, third, last = ARGV[1], ARGV[2] + 0, ARGV[3], ARGV[4], ARGV[5] + 0, ARGV[6]
local base = (ARGV[7] or limit) + 1

local call = redis.call
local clock = call('TIME')
local micros = clock[2] + 0
local now = clock[1] * 1000 + (micros - micros % 1000) / 1000
local which, rest = 1, third - now
if rest <= 0 then
  which, rest = 2, last - now
  if rest <= 0 then
    return {now}
  end
elseif now - second < 0 then
  which, rest = 0, second - now
  if now - first < 0 then
    return {now}
  end
end

local used, left = 0, 0
local stored = call('GET', key)
if stored then
  left = call('PTTL', key)
  if left < 0 or left > rest then
    left = rest
    if cost ~= '0' then
      call('PEXPIRE', key, rest)
    end
  end
  if left > 0 then
    used = stored + 0
  end
end

local after = used + cost
if cost == '0' or after > limit then
  local state = 3 * (left * base + math.min(used, base - 1)) + which
  return cost == '0' and state or -1 - state
end
if left > 0 then
  call('INCRBY', key, cost)
else
  call('SET', key, cost, 'PX', rest)
  left = rest
end
return 3 * (left * base + after) + which
