-- Token bucket for rates above 1,000 a second. Its clock is TIME, in ticks of a
-- microsecond, or coarser if the numbers would not be exact.
--
-- The value is the tick at which the debt is gone, a colon, and the slack:
-- debt = (tick - now) * drain - slack. If drain is 1, the slack is always 0, and the colon
-- and the slack are left out.
--
-- KEYS[1]  the bucket
-- ARGV[1]  cost, in units
-- ARGV[2]  capacity, in units
-- ARGV[3]  drain, in units a tick
-- ARGV[4]  tick, in microseconds
-- ARGV[5]  time the largest debt takes to drain, in milliseconds, rounded up
-- ARGV[6]  the largest debt that it can have, in units, if not the capacity; or nothing
-- returns  granted: the debt afterwards; denied: -1 - debt
-- effects  granted with a cost: SET with PX; denied: nothing, or one SET with PX that
--          cuts a debt or a time to live that is larger than it can be
local key = KEYS[1]
local cost, capacity, drain, tick, longest = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5]
local most = (ARGV[6] or capacity) + 0

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
now = (now - now % tick) / tick

local debt, broken = 0, false
local stored = call('GET', key)
if stored then
  if drain == 1 then
    debt = stored - now
  else
    local colon = string.find(stored, ':', 1, true)
    debt = (string.sub(stored, 1, colon - 1) - now) * drain - string.sub(stored, colon + 1)
  end
  broken = debt > most
  if broken then
    debt = most
  elseif debt < 0 then
    debt = 0
  end
end

local after = debt + cost
local denied = after > capacity and cost > 0
if denied then
  local left = broken and 0 or call('PTTL', key)
  broken = broken or left < 0 or left > longest + 0
  after = debt
end
if broken and denied or cost > 0 and not denied then
  local slack = -after % drain
  local gone = now + (after + slack) / drain
  if drain > 1 then
    gone = string.format('%.0f:%.0f', gone, slack)
  end
  call('SET', key, gone, 'PX', longest)
end
if denied then
  return -1 - debt
end
return after
