-- Decides the requests of several callers under one policy in one call.
--
-- A run is requests with the same key and cost that follow each other. Each key is read
-- when its run is decided, so a key may have several runs.
--
-- KEYS[i]  the state of run i, as limit_<kind>.lua keeps it
-- ARGV[1]  kind: bucket, bucket_fast, window or sliding
-- ARGV[2]  capacity in units, or limit
-- ARGV[3]  drain in units a tick, or window in milliseconds
-- ARGV[4]  for a bucket the longest time to live, in milliseconds; for a fast bucket the
--          tick, in microseconds; otherwise 0
-- ARGV[5]  for a fast bucket the longest time to live, in milliseconds; otherwise 0
-- ARGV[2 * i + 4]  cost of each request of run i
-- ARGV[2 * i + 5]  how many requests it has
-- returns  for each run, 1 more than what limit_<kind>.lua would have answered before it
--          to a cost of 0; or 0 if the key holds something else: then nothing was done
--          for the run
-- effects  for each run the same as its requests one after the other, with fewer
--          commands: SET with PX, INCRBY, PEXPIRE
local kind, limit = ARGV[1], ARGV[2] + 0
local call, try = redis.call, redis.pcall
local before = {}

-- Returns a whole number of 0 or more, or nil: the process cannot count on from any
-- other.
local function whole(text)
  local n = tonumber(text)
  return n and n >= 0 and n % 1 == 0 and n or nil
end

-- Returns how many of n requests are granted if there is that much room.
local function granted(room, cost, n)
  if cost == 0 or room < cost then
    return 0
  end
  return math.min(n, (room - room % cost) / cost)
end

local function bucket(i, key, cost, n, drain, longest)
  local debt, broken = 0, false
  local left = call('PTTL', key)
  if left ~= -2 then
    debt = left * drain
    if drain > 1 then
      local slack = try('GET', key) or 0
      slack = whole(slack)
      if not slack then
        return
      end
      debt = debt - slack
    end
    broken = left == -1 or debt > limit
    if broken then
      debt = limit
    elseif debt < 0 then
      debt = 0
    end
  end
  before[i] = debt + 1
  local grants = granted(limit - debt, cost, n)
  if grants > 0 then
    local after = debt + grants * cost
    local slack = -after % drain
    call('SET', key, slack == 0 and '0' or slack, 'PX', (after + slack) / drain)
  elseif broken and cost > 0 and n > 0 then
    call('SET', key, longest * drain - limit, 'PX', longest)
  end
end

local function bucket_fast(i, key, cost, n, drain, longest, now)
  local debt, broken = 0, false
  local stored = try('GET', key)
  if stored then
    local gone, slack = whole(stored), 0
    if drain > 1 then
      local colon = type(stored) == 'string' and string.find(stored, ':', 1, true)
      gone = colon and whole(string.sub(stored, 1, colon - 1))
      slack = colon and whole(string.sub(stored, colon + 1))
    end
    if not gone or not slack then
      return
    end
    debt = (gone - now) * drain - slack
    broken = debt > limit
    if broken then
      debt = limit
    elseif debt < 0 then
      debt = 0
    end
  end
  before[i] = debt + 1
  if cost == 0 or n == 0 then
    return
  end
  local grants = granted(limit - debt, cost, n)
  if grants == 0 and not broken then
    local left = call('PTTL', key)
    broken = left < 0 or left > longest
  end
  if grants > 0 or broken then
    local after = debt + grants * cost
    local slack = -after % drain
    local gone = now + (after + slack) / drain
    if drain > 1 then
      gone = string.format('%.0f:%.0f', gone, slack)
    end
    call('SET', key, gone, 'PX', longest)
  end
end

-- Returns what a key holds and how long it lives: 0 and 0 if it does not exist, and nil
-- if it does not hold a whole number. It cuts a time to live that is longer than it can
-- be.
local function counter(key, cost, most)
  local stored, left = try('GET', key), 0
  if not stored then
    return 0, 0
  end
  stored = whole(stored)
  if stored then
    left = call('PTTL', key)
    if left < 0 or left > most then
      left = most
      if cost > 0 then
        call('PEXPIRE', key, most)
      end
    end
  end
  return stored, left
end

local function window(i, key, cost, n, length)
  local used, left = counter(key, cost, length)
  if not used then
    return
  end
  if left == 0 then
    used = 0
  end
  used = math.min(used, limit)
  before[i] = left * (limit + 1) + used + 1
  local grants = granted(limit - used, cost, n)
  if grants > 0 and left == 0 then
    call('SET', key, grants * cost, 'PX', length)
  elseif grants > 0 and type(try('INCRBY', key, grants * cost)) == 'table' then
    before[i] = 0
  end
end

local function sliding(i, key, cost, n, length)
  local stored, left = counter(key, cost, 2 * length)
  if not stored then
    return
  end
  if left == 0 then
    stored = 0
  end
  local current = stored % (limit + 1)
  local last = math.min((stored - current) / (limit + 1), limit)
  local rest = left - length
  local rolled = rest <= 0
  if rolled then
    last, current, rest = current, 0, left
  end
  before[i] = (last * (limit + 1) + current) * (length + 1) + rest + 1
  local room = limit * length - last * rest
  local grants = granted((room - room % length) / length - current, cost, n)
  if grants > 0 and rolled then
    if rest == 0 then
      rest = length
    end
    call('SET', key, last * (limit + 1) + grants * cost, 'PX', rest + length)
  elseif grants > 0 and type(try('INCRBY', key, grants * cost)) == 'table' then
    before[i] = 0
  end
end

local decide, a, b, now = bucket, ARGV[3] + 0, ARGV[4] + 0, 0
if kind == 'bucket_fast' then
  local clock, tick = call('TIME'), b
  now = clock[1] * 1000000 + clock[2]
  now = (now - now % tick) / tick
  local longest = ARGV[5] + 0
  decide, b = bucket_fast, longest
elseif kind == 'window' then
  decide = window
elseif kind == 'sliding' then
  decide = sliding
end
for i = 1, #KEYS do
  local key, cost, n = KEYS[i], ARGV[2 * i + 4] + 0, ARGV[2 * i + 5] + 0
  before[i] = 0
  decide(i, key, cost, n, a, b, now)
end
return before
