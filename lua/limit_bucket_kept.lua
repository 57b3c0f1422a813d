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
-- KEYS[1]  the bucket
-- ARGV[1]  cost, in units
-- ARGV[2]  capacity, in units
-- ARGV[3]  drain, in units
-- ARGV[4]  micros: the time in which they drain, in microseconds
-- ARGV[5]  the largest debt that it can have, in units
-- returns  {charged, now - since, drain, micros} as the bucket has them afterwards. If
--          the request is denied, the first is -1 - charged. If there is no debt, it is
--          {0, 0, drain, micros} with the arguments. Granted with a cost, if no part of a
--          unit has drained: the debt alone
-- effects  granted with a cost: SET with PX; denied: nothing, or one SET with PX that
--          cuts a debt or a time to live that is larger than it can be
local key = KEYS[1]
local cost, capacity, drain, micros, most = ARGV[1] + 0, ARGV[2] + 0, ARGV[3], ARGV[4], ARGV[5]

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local debt, charged, since, broken = 0, 0, now, false
local by, per, limit = drain, micros, most
local stored = call('GET', key)
if stored then
  charged, since, by, per, limit = string.match(stored, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  charged, since = charged + 0, since + 0
  local drained = (now - since) * by
  broken = drained < 0
  if drained < charged * per then
    debt = charged - (drained - drained % per) / per
  end
  if broken or debt > limit + 0 then
    debt, broken = math.min(charged, limit), true
  end
  if debt == 0 or broken then
    charged, since = debt, now
  end
end

local after = debt + cost
local denied = after > capacity and cost > 0
if cost > 0 and not denied then
  if by ~= drain or per ~= micros or limit ~= most or debt == 0 or (now - since) * drain > 4503599627370496 then
    charged, since = debt, now
  end
  charged = charged + cost
  local lives = math.ceil((charged * micros / drain - (now - since)) / 1000) + 1
  call('SET', key, string.format('%.0f:%.0f:%s:%s:%s', charged, since, drain, micros, most), 'PX', lives)
  if (now - since) * drain % micros == 0 then
    return after
  end
  return {charged, now - since, drain + 0, micros + 0}
end
if denied and stored then
  local left = broken and 0 or call('PTTL', key)
  if broken or left < 0 or left > limit * per / by / 1000 + 2 then
    call('SET', key, string.format('%.0f:%.0f:%s:%s:%s', charged, since, by, per, limit), 'PX',
      math.ceil((charged * per / by - (now - since)) / 1000) + 1)
  end
end
if debt == 0 then
  by, per = drain, micros
end
return {denied and -1 - charged or charged, now - since, by + 0, per + 0}
