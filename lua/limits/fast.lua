-- Token bucket for rates above 1,000 a second. Its clock is TIME, in ticks of a
-- microsecond, or coarser if the numbers would not be exact.
--
-- The value is the tick at which the debt is gone, a colon, and the slack:
-- debt = (tick - now) * drain - slack. If drain is 1, the slack is always 0, and the colon
-- and the slack are left out.

-- Returns the debt, and whether it was more than it can be.
local function fast_read(key, drain, most, tick)
  local stored = try('GET', key)
  if not stored then
    return 0, false
  end
  local gone, slack
  if drain == 1 then
    gone, slack = whole(stored), 0
  elseif type(stored) == 'string' then
    gone, slack = string.match(stored, '^(%d+):(%d+)$')
    gone = gone and max(gone + 0, slack + 0) <= 9007199254740992 and gone
  end
  if not gone then
    return nil, stored
  end
  local debt = (gone - (now - now % tick) / tick) * drain - slack
  if debt > most then
    return most, true
  end
  return max(debt, 0), false
end

local function fast_store(key, debt, drain, tick, longest)
  local slack = -debt % drain
  local gone = (now - now % tick) / tick + (debt + slack) / drain
  if drain > 1 then
    gone = string.format('%.0f:%.0f', gone, slack)
  end
  call('SET', key, gone, 'PX', longest)
end

-- Writes back a debt or a time to live that was more than it can be.
local function fast_heal(key, debt, broken, drain, tick, longest)
  local left = broken and -1 or call('PTTL', key)
  if left == -1 or left > longest + 0 then
    fast_store(key, debt, drain, tick, longest)
  end
end

-- Settled.

-- Returns the debt after it has changed by some permits; see settled_debt.
local function fast_settle(key, more, cost, told, drain, most, unit, tick, longest)
  local debt, held = fast_read(key, drain, most, tick)
  if not debt then
    return nil, held
  end
  local after = settled_debt(debt, more, cost, told, drain, most, unit, tick)
  if after > 0 and after ~= debt then
    later(function() return fast_store(key, after, drain, tick, longest) end)
  elseif after ~= debt then
    later(function() return call('DEL', key) end)
  end
  return after
end

-- Alone.
--
-- KEYS[1]  the bucket
-- ARGV[1]  capacity, in units
-- ARGV[2]  drain, in units a tick
-- ARGV[3]  the largest debt that it can have, in units
-- ARGV[4]  tick, in microseconds
-- ARGV[5]  time the largest debt takes to drain, in milliseconds, rounded up
-- ARGV[6]  cost, in units
-- returns  granted: the debt afterwards; denied: -1 - debt
-- effects  granted with a cost: SET with PX; denied: nothing, or one SET with PX that
--          cuts a debt or a time to live that is larger than it can be
local key, capacity, drain, most = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local tick, longest, cost = ARGV[4] + 0, ARGV[5], ARGV[6] + 0
local debt, broken = fast_read(key, drain, most, tick)
if not debt then
  return type(broken) == 'table' and broken or redis.error_reply('FOREIGN the key holds no record of this policy')
elseif cost > 0 and debt + cost > capacity then
  fast_heal(key, debt, broken, drain, tick, longest)
  return -1 - debt
elseif cost > 0 then
  fast_store(key, debt + cost, drain, tick, longest)
end
return debt + cost
