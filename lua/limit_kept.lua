-- Token bucket whose numbers may change while it is in use. Its clock is TIME, whatever
-- its rate is.
--
-- The value is five whole numbers with colons between them:
-- charged:since:drain:micros:most. drain units drain in micros microseconds, and most is
-- the largest debt; these three are those of the policy that charged last. since is a
-- TIME in microseconds: no policy with other numbers has charged from then on. charged is
-- the debt at that time, plus what was charged since:
-- debt = charged - (now - since) * drain / micros, rounded up.
-- A unit is a millionth of a permit.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
--
-- KEYS[1]  the bucket
-- ARGV[1]  capacity, in units
-- ARGV[2]  drain, in units
-- ARGV[3]  micros: the time in which they drain, in microseconds
-- ARGV[4]  the largest debt that it can have, in units
-- ARGV[5]  cost, in units
-- returns  {charged, now - since, drain, micros} as the bucket has them afterwards. If
--          the request is denied, the first is -1 - charged. If there is no debt, it is
--          {0, 0, drain, micros} with the arguments. Granted with a cost, if no part of a
--          unit has drained: the debt alone
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

-- Returns the debt and what is stored, and whether the debt was more than it can be.
local function kept_read(key, drain, micros, most)
  local stored = try('GET', key)
  if not stored then
    return 0, 0, now, drain, micros, most, false
  end
  local text = type(stored) == 'string' and stored or ''
  local charged, since, by, per, limit = string.match(text, '^(%d+):(%d+):([1-9]%d*):([1-9]%d*):(%d+)$')
  if not charged then
    return nil, stored
  end
  charged, since, by, per, limit = charged + 0, since + 0, by + 0, per + 0, limit + 0
  if max(charged, since, by, per, limit, limit * per / by) > 9007199254740992 then
    return nil, stored
  end
  local drained, debt = (now - since) * by, 0
  if drained < charged * per then
    debt = charged - (drained - drained % per) / per
  end
  local broken = drained < 0 or debt > limit
  if broken then
    debt = min(charged, limit)
  end
  if debt == 0 or broken then
    charged, since = debt, now
  end
  return debt, charged, since, by, per, limit, broken
end

local function kept_store(key, charged, since, drain, micros, most)
  local lives = math.ceil((charged * micros / drain - (now - since)) / 1000) + 1
  call('SET', key, string.format('%.0f:%.0f:%.0f:%.0f:%.0f', charged, since, drain, micros, most), 'PX', lives)
end

-- Adds units to a debt. It returns what is charged, and since when.
local function kept_add(units, debt, charged, since, by, per, limit, drain, micros, most)
  if by ~= drain or per ~= micros or limit ~= most or debt == 0 or (now - since) * drain > 4503599627370496 then
    charged, since = debt, now
  end
  return charged + units, since
end

-- Writes back a debt or a time to live that was more than it can be.
local function kept_heal(key, charged, since, by, per, limit, broken)
  local left = broken and -1 or call('PTTL', key)
  if left == -1 or left > limit * per / by / 1000 + 2 then
    kept_store(key, charged, since, by, per, limit)
  end
end

local key, drain, micros, most, cost = KEYS[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local debt, charged, since, by, per, limit, broken = kept_read(key, drain, micros, most)
if not debt then
  return type(charged) == 'table' and charged or redis.error_reply('FOREIGN the key holds no record of this policy')
end
local denied = cost > 0 and debt + cost > ARGV[1] + 0
if denied then
  kept_heal(key, charged, since, by, per, limit, broken)
elseif cost > 0 then
  charged, since = kept_add(cost, debt, charged, since, by, per, limit, drain, micros, most)
  kept_store(key, charged, since, drain, micros, most)
  if (now - since) * drain % micros == 0 then
    return debt + cost
  end
  by, per = drain, micros
end
if charged == 0 then
  by, per = drain, micros
end
return {denied and -1 - charged or charged, now - since, by, per}
