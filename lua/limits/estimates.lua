-- Estimates: costs that a window gives back if their lease ends before they are settled.
-- They are a sorted set of token:cost, by the TIME in milliseconds at which the lease
-- ends. The set ends just before the window.

-- Takes back up to 100 estimates whose lease has ended. It returns how many of the used
-- permits they have. With only_asked it takes nothing back.
local function estimates_lapsed(key, estimates, time, used, only_asked)
  local over = call('ZRANGEBYSCORE', estimates, '-inf', time, 'LIMIT', '0', '100')
  local permits = 0
  for place = 1, #over do
    permits = permits + string.match(over[place], '%d+$')
  end
  permits = min(permits, used)
  if permits > 0 and not only_asked then
    if type(try('INCRBY', key, -permits)) ~= 'number' then
      return 0
    elseif type(try('ZREM', estimates, unpack(over))) ~= 'number' then
      call('INCRBY', key, permits)
      return 0
    end
  end
  return permits
end

-- Stores an estimate of a window that lasts for rest milliseconds, and returns the error if
-- Redis refuses it. If the window begins with it, the others are of one whose counter was
-- deleted.
local function estimates_add(estimates, time, lease, estimate, rest, begins)
  local old = begins and try('ZCARD', estimates) or 0
  if type(old) == 'number' and old > 0 then
    old = try('DEL', estimates)
  end
  local set = type(old) == 'table' and old or try('ZADD', estimates, time + lease, estimate)
  if type(set) == 'number' then
    -- A key lasts until its end is over, and before Redis 7.2 the clock moves within a
    -- script. So none of these estimates is there in the next window.
    set = try('PEXPIRE', estimates, max(rest - 2, 0))
  end
  return set ~= 1 and set or nil
end

-- Removes an estimate from the sets of some keys, because nothing is charged.
local function estimates_drop(keys, from, till, estimate)
  for place = from, till do
    try('ZREM', keys[place], estimate)
  end
end
