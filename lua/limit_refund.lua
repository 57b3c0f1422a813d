-- Gives back what a decision took, as far as it is left. What the state of each
-- kind means is told in limit_bucket.lua, limit_bucket_fast.lua,
-- limit_window.lua, limit_sliding.lua and limit_log.lua.
--
-- KEYS[i]  the i-th policy's state
-- ARGV[1]  cost; 0 only asks for the time
-- ARGV[2]  TIME at which it was taken, at the soonest, in microseconds
-- ARGV[3]  the same at the latest
-- ARGV[4]  TIME now at the soonest: when it is earlier, the caller knows another
--          clock than this one
-- ARGV[7 * i - 2]  kind: bucket, fast, window, sliding or log
-- ARGV[7 * i - 1]  capacity in units, or limit
-- ARGV[7 * i]      drain, or window
-- ARGV[7 * i + 1]  units a permit
-- ARGV[7 * i + 2]  the longest time to live, in milliseconds
-- ARGV[7 * i + 3]  tick of the clock, in microseconds
-- ARGV[7 * i + 4]  what the decision told: of bucket and fast the debt
--                  afterwards, of window and sliding the rest of the window in
--                  milliseconds, of log the mark
-- returns  TIME in microseconds, negative when nothing was given back
-- effects  SET with PX, INCRBY, LREM, and DEL of what is empty then
local cost, soonest, latest, sent = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
if cost == 0 or now < sent then
  return -now
end

local function ticks(time, tick)
  return (time - time % tick) / tick
end

-- Windows are a length apart at least; one is found a millisecond short where
-- the clock moves within a script.
local function same(ends, rest, length)
  local first, last = ticks(soonest, 1000) + rest, ticks(latest, 1000) + rest
  return last - first + 1 < length and first - 1 <= ends and ends <= last
end

local writes = {}
local function later(write)
  writes[#writes + 1] = write
end

for i = 1, #KEYS do
  local key, kind, capacity, pace = KEYS[i], ARGV[7 * i - 2], ARGV[7 * i - 1] + 0, ARGV[7 * i] + 0
  local unit, longest, tick, told = ARGV[7 * i + 1] + 0, ARGV[7 * i + 2], ARGV[7 * i + 3] + 0, ARGV[7 * i + 4]

  if kind == 'log' then
    if told + pace > now then
      later(function() return call('LREM', key, -cost, told) end)
    end
  else
    local stored = call('GET', key)
    local left = stored and call('PTTL', key) or 0

    if stored and (kind == 'bucket' or kind == 'fast') then
      local time = ticks(now, tick)
      local debt
      if kind == 'bucket' then
        debt = left * pace - stored
        if left == -1 then
          debt = capacity
        end
      else
        local colon = string.find(stored, ':', 1, true) or #stored + 1
        local slack = string.sub(stored, colon + 1)
        debt = (string.sub(stored, 1, colon - 1) - time) * pace - (slack == '' and 0 or slack)
      end
      debt = math.min(debt, capacity)
      -- The oldest drains first: what was taken after this cost is there as a
      -- whole while any of this cost is.
      local back, own = cost * unit, told - math.max(time - ticks(soonest, tick), 0) * pace
      if own > 0 and debt > 0 then
        if own < back then
          local most = told - math.max(time - ticks(latest, tick), 0) * pace
          if most - own < unit then
            -- What is younger are whole permits, which tells how much has drained
            -- better than the caller's idea of this clock does.
            local younger = math.max(debt - math.min(most, back), 0)
            own = math.max(debt - younger - -younger % unit, own)
          end
          back = own
        end
        debt = debt - back
        if debt <= 0 then
          later(function() return call('DEL', key) end)
        else
          local slack = -debt % pace
          local lives = (debt + slack) / pace
          local value = kind == 'bucket' and slack or time + lives
          if kind == 'bucket' and slack == 0 then
            value = '0'
          elseif kind == 'fast' then
            lives = longest
            if pace > 1 then
              value = string.format('%.0f:%.0f', value, slack)
            end
          end
          later(function() return call('SET', key, value, 'PX', lives) end)
        end
      end

    elseif left > 0 and kind == 'window' then
      if same(ticks(now, 1000) + left, told, pace) then
        if stored - cost <= 0 then
          later(function() return call('DEL', key) end)
        else
          later(function() return call('INCRBY', key, -cost) end)
        end
      end

    elseif left > 0 then
      local current = stored % (capacity + 1)
      local last, rest = (stored - current) / (capacity + 1), left - pace
      local rolled = rest <= 0
      if rolled then
        last, current, rest = current, 0, left
      end
      local ends, back = ticks(now, 1000) + rest, 0
      if same(ends - pace, told, pace) then
        back = math.min(cost, last)
        last = last - back
        if not rolled then
          back = back * (capacity + 1)
        end
      elseif same(ends, told, pace) then
        back = math.min(cost, current)
        current = current - back
      end
      if back > 0 and current == 0 and last == 0 then
        later(function() return call('DEL', key) end)
      elseif back > 0 and current == 0 and not rolled then
        -- as it stood before this window's first request
        later(function() return call('SET', key, last, 'PX', rest) end)
      elseif back > 0 then
        later(function() return call('INCRBY', key, -back) end)
      end
    end
  end
end

local given = false
for i = 1, #writes do
  given = writes[i]() ~= 0 or given
end
return given and now or -now
