-- Token bucket whose clock is the time to live of its key.
--
-- The bucket holds a debt, which drains. The key lives exactly until the debt is gone.
-- The value is the slack: debt = PTTL * drain - slack. If drain is 1, the slack is
-- always 0.
--
-- KEYS[1]  the bucket
-- ARGV[1]  cost, in units
-- ARGV[2]  capacity, in units
-- ARGV[3]  drain, in units a millisecond
-- ARGV[4]  time the largest debt takes to drain, in milliseconds, rounded up
-- ARGV[5]  the largest debt that it can have, in units, if not the capacity; or nothing
-- returns  granted: the debt afterwards; denied: -1 - debt
-- effects  granted with a cost: SET with PX; denied: nothing, or one SET with PX that
--          cuts a time to live that is longer than it can be
local key = KEYS[1]
local cost, capacity, drain, longest = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4]
local most = (ARGV[5] or capacity) + 0

local call = redis.call
local debt, broken = 0, false
local left = call('PTTL', key)
if left ~= -2 then
  debt = left * drain
  if drain > 1 then
    debt = debt - (call('GET', key) or 0)
  end
  broken = left == -1 or debt > most
  if broken then
    debt = most
  elseif debt < 0 then
    debt = 0
  end
end

local after = debt + cost
if after > capacity and cost > 0 then
  if broken then
    call('SET', key, longest * drain - most, 'PX', longest)
  end
  return -1 - debt
end
if cost > 0 then
  local slack = -after % drain
  call('SET', key, slack == 0 and '0' or slack, 'PX', (after + slack) / drain)
end
return after
