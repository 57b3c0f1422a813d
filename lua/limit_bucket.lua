-- Token bucket whose clock is the time to live of its key.
--
-- The bucket holds a debt, which drains. The key lives exactly until the debt is gone.
-- The value is the slack: debt = PTTL * drain - slack. If drain is 1, the slack is
-- always 0.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
--
-- KEYS[1]  the bucket
-- ARGV[1]  capacity, in units
-- ARGV[2]  drain, in units a millisecond
-- ARGV[3]  the largest debt that it can have, in units
-- ARGV[4]  cost, in units
-- returns  granted: the debt afterwards; denied: -1 - debt
-- effects  granted with a cost: SET with PX; denied: nothing, or one SET with PX that
--          cuts a time to live that is longer than it can be
local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if neap never writes it: if it has a sign,
-- an exponent, a space or a leading 0, or is not exact.
local function whole(text)
  local n = tonumber(text)
  if n and n <= 9007199254740992 and (string.find(text, '^[1-9]%d*$') or text == '0') then
    return n
  end
end

-- Returns the debt, and whether it was more than it can be. If the key holds something
-- else, it returns nil and what that is, or the error; so do the other kinds.
local function bucket_read(key, drain, most)
  local left, slack = call('PTTL', key), 0
  if left == -2 then
    return 0, false
  elseif drain > 1 then
    local stored = try('GET', key) or '0'
    slack = whole(stored)
    if not slack then
      return nil, stored
    end
  end
  local debt = left * drain - slack
  if left == -1 or debt > most then
    return most, true
  end
  return max(debt, 0), false
end

-- Stores a debt above 0.
local function bucket_store(key, debt, drain)
  local slack = -debt % drain
  call('SET', key, slack == 0 and '0' or slack, 'PX', (debt + slack) / drain)
end

local key, capacity, drain, cost = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[4] + 0
local debt, broken = bucket_read(key, drain, ARGV[3] + 0)
if not debt then
  return type(broken) == 'table' and broken or redis.error_reply('FOREIGN the key holds no record of this policy')
end
local denied = cost > 0 and debt + cost > capacity
if cost > 0 and (broken or not denied) then
  bucket_store(key, denied and debt or debt + cost, drain)
end
return denied and -1 - debt or debt + cost
