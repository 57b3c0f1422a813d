-- Token bucket for rates above 1,000 a second. Its clock is TIME, in ticks of a
-- microsecond, or coarser if the numbers would not be exact.
--
-- The value is the tick at which the debt is gone, a colon, and the slack:
-- debt = (tick - now) * drain - slack. If drain is 1, the slack is always 0, and the colon
-- and the slack are left out.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
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
