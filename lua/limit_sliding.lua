-- Sliding window of two counters: the running window's count, and the last window's count
-- in proportion to how much of it the sliding window still covers.
--
-- Both are in one number, last * (most + 1) + current. The key lives until the window
-- after the current one ends, so its time to live is the clock: above one window, the
-- current window runs; below, the next one does.
--
-- KEYS[1]  the counters
-- ARGV[1]  cost
-- ARGV[2]  limit
-- ARGV[3]  window, in milliseconds
-- ARGV[4]  the most that a counter can hold, if not the limit; or nothing
-- returns  r = (last * (limit + 1) + current) * (window + 1) + rest of the running window
--          in milliseconds. Granted: r afterwards; denied: -1 - r. If a counter is above
--          the limit: {last, current, rest}; if denied, the first is -1 - last
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or longer than two windows
local key = KEYS[1]
local cost, limit, window = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
local base = (ARGV[4] or limit) + 1

local call = redis.call
local last, current, left = 0, 0, 0
local stored = call('GET', key)
if stored then
  left = call('PTTL', key)
  if left < 0 or left > 2 * window then
    left = 2 * window
    if cost ~= '0' then
      call('PEXPIRE', key, left)
    end
  end
  if left > 0 then
    current = stored % base
    last = (stored - current) / base
  end
end

local rest = left - window
local rolled = rest <= 0
if rolled then
  last, current, rest = current, 0, left
end

local after = current + cost
if cost ~= '0' then
  if last * rest + after * window > limit * window then
    if last > limit or current > limit then
      return {-1 - last, current, rest}
    end
    return -1 - ((last * (limit + 1) + current) * (window + 1) + rest)
  end
  if rolled then
    if rest == 0 then
      rest = window
    end
    call('SET', key, last * base + cost, 'PX', rest + window)
  else
    call('INCRBY', key, cost)
  end
end
if last > limit or after > limit then
  return {last, after, rest}
end
return (last * (limit + 1) + after) * (window + 1) + rest
