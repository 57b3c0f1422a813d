-- Fixed window that begins with its first admitted request: a counter whose time to live
-- is the rest of the window.
--
-- KEYS[1]  the counter
-- ARGV[1]  cost
-- ARGV[2]  limit
-- ARGV[3]  window, in milliseconds
-- ARGV[4]  most, the most that can be used, if not the limit; or nothing
-- returns  r = used + (most + 1) * rest of the window in milliseconds. used is at most
--          most. Granted: r afterwards; denied: -1 - r
-- effects  granted with a cost: SET with PX, or INCRBY; PEXPIRE cuts a time to live that
--          is missing or longer than the window
local key = KEYS[1]
local cost, limit, window = ARGV[1], ARGV[2] + 0, ARGV[3]
local base = (ARGV[4] or limit) + 1

local call = redis.call
local used, left = 0, 0
local stored = call('GET', key)
if stored then
  left = call('PTTL', key)
  if left < 0 or left > window + 0 then
    left = window + 0
    if cost ~= '0' then
      call('PEXPIRE', key, window)
    end
  end
  if left > 0 then
    used = stored + 0
  end
end

local after = used + cost
if cost == '0' or after > limit then
  local state = left * base + math.min(used, base - 1)
  return cost == '0' and state or -1 - state
end
if left > 0 then
  call('INCRBY', key, cost)
else
  call('SET', key, cost, 'PX', window)
  left = window
end
return left * base + after
