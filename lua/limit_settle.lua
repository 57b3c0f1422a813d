-- Changes what a decision took into what it should have taken. If that is less, the
-- difference is given back, as far as it is left; if it is more, the difference is
-- charged now. A refund settles to nothing. The states of the kinds are described in
-- limit_bucket.lua, limit_bucket_fast.lua, limit_bucket_kept.lua, limit_window.lua,
-- limit_sliding.lua, limit_log.lua and limit_calendar.lua.
--
-- An estimate that is missing before the end of its window was taken back. Then the
-- present window is charged all that was used. That is the estimate's own window, or the
-- one that began when its own had become empty.
--
-- KEYS[i]  the i-th policy's state
-- KEYS[count + 1]  a marker, by which this changes something once, however often it is
--          called; after it the estimates of windows, as limit_set.lua describes them
-- ARGV[1]  how many permits the decision should have taken
-- ARGV[2]  TIME at which they were taken, at the soonest, in microseconds
-- ARGV[3]  TIME at which they were taken, at the latest, in microseconds
-- ARGV[4]  TIME now, at the soonest: if TIME is earlier than that, the caller knows the
--          clock of another server
-- ARGV[5]  count, how many policies there are; 0 only asks for the time
-- ARGV[6]  how long the marker lives, in milliseconds
-- ARGV[7]  token of the estimates; or nothing
-- ARGV[10 * i - 2]  kind: bucket, fast, kept, window, sliding, log or calendar
-- ARGV[10 * i - 1]  capacity in units, or limit
-- ARGV[10 * i]     drain, or window; for a calendar, this and the next three are the
--                  TIMEs at which three windows begin and the last ends, in milliseconds
-- ARGV[10 * i + 1]  units of a permit
-- ARGV[10 * i + 2]  the longest time to live, in milliseconds
-- ARGV[10 * i + 3]  tick of the clock, in microseconds; for kept, the time in which the
--                  drain drains
-- ARGV[10 * i + 4]  the most that it can hold, in units: what is beyond is forgiven
-- ARGV[10 * i + 5]  how many permits were taken
-- ARGV[10 * i + 6]  what the decision reported: for bucket, fast and kept the debt
--                  afterwards; for window and sliding the rest of the window in
--                  milliseconds; for log the mark. It is not needed to charge more,
--                  except with estimates
-- ARGV[10 * i + 7]  index in KEYS of the window's estimates; 0 if there are none
-- returns  {TIME in microseconds, permits that were forgiven}, and then for each policy the
--          numbers of its state as limit_set.lua reports them, none for a log. TIME is
--          negative if nothing changed, now or when the marker was set. {TIME}, negative,
--          if only the time was asked for, or if the caller knows the clock of another
--          server; {0, TIME in milliseconds} if TIME is in no window of a calendar
-- effects  SET of the marker with PX, first; SET with PX, INCRBY, LREM, ZREM of an
--          estimate, and DEL of what is then empty, or of the marker if nothing changed;
--          nothing if the marker is there
local actual, soonest, latest, sent, count = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local remembered, token = ARGV[6], ARGV[7]
if count == 0 or now < sent then
  return {-now}
end
local marker = KEYS[count + 1]
local settled = call('GET', marker)

local function ticks(time, tick)
  return (time - time % tick) / tick
end

-- Reports whether the permits were taken in the window that ends then. Windows are at
-- least a length apart, so the window whose end is nearest is the right one. After a
-- failover its end may be one of another clock, which is off by up to ten seconds. More is
-- not forgiven: after a reset a window may begin at any time. Before Redis 7.2 the clock
-- moves within a script. So a window may seem a millisecond short because of the
-- decision's script. It seems even shorter by as much as the clock moved from this
-- script's TIME to its PTTL.
local function same(ends, rest, length)
  local first, last = ticks(soonest, 1000) + rest - 1, ticks(latest, 1000) + rest
  local clock_now = call('TIME')
  local moved = math.ceil((clock_now[1] * 1000000 + clock_now[2] - now) / 1000)
  local off = math.min((length - (last - first + moved)) / 2, 10000)
  return off > 0 and first - moved - off < ends and ends < last + off
end

local writes, reply, forgiven = {}, {now, 0}, 0
local function later(write)
  writes[#writes + 1] = write
end
local function tell(number)
  reply[#reply + 1] = number
end

-- Returns how many of some permits find room; the others are forgiven.
local function charged(room, permits)
  local fit = math.max(math.min(room, permits), 0)
  forgiven = math.max(forgiven, permits - fit)
  return fit
end

-- Returns what is left of a cost in a debt, which is from own to at_most. The oldest
-- drains first: while any of this cost is left, all that was taken after it is there as a
-- whole.
local function remains(own, at_most, whole, debt, unit)
  if own <= 0 or debt <= 0 then
    return 0
  end
  if own < whole and at_most - own < unit then
    -- Younger costs are whole permits. That shows how much has drained better than
    -- the caller's estimate of this clock does.
    local younger = math.max(debt - math.min(at_most, whole), 0)
    own = math.max(debt - younger - -younger % unit, own)
  end
  return math.min(own, whole)
end

for i = 1, count do
  local key, kind, capacity, pace = KEYS[i], ARGV[10 * i - 2], ARGV[10 * i - 1] + 0, ARGV[10 * i] + 0
  local unit, longest, tick = ARGV[10 * i + 1] + 0, ARGV[10 * i + 2], ARGV[10 * i + 3] + 0
  local most, cost, told = ARGV[10 * i + 4] + 0, ARGV[10 * i + 5] + 0, ARGV[10 * i + 6]
  local more = settled and 0 or actual - cost -- below 0, permits are given back
  local place, estimate = ARGV[10 * i + 7] + 0, token .. ':' .. ARGV[10 * i + 5]
  local estimates = KEYS[place]

  if kind == 'log' then
    if more < 0 and told + pace > now then
      later(function() return call('LREM', key, more, told) end)
    end
  else
    local stored = call('GET', key)
    local left = stored and call('PTTL', key) or 0

    if kind == 'bucket' or kind == 'fast' then
      local time = ticks(now, tick)
      local debt = 0
      if stored and kind == 'bucket' then
        debt = left * pace - stored
        if left == -1 then
          debt = most
        end
      elseif stored then
        local colon = string.find(stored, ':', 1, true) or #stored + 1
        local slack = string.sub(stored, colon + 1)
        debt = (string.sub(stored, 1, colon - 1) - time) * pace - (slack == '' and 0 or slack)
      end
      debt = math.max(math.min(debt, most), 0)
      local change
      if more > 0 then
        change = math.max(math.min(most - debt, more * unit), 0)
        forgiven = math.max(forgiven, more - ticks(change, unit))
      else
        local own = told - math.max(time - ticks(soonest, tick), 0) * pace
        local at_most = told - math.max(time - ticks(latest, tick), 0) * pace
        change = -math.min(remains(own, at_most, cost * unit, debt, unit), -more * unit)
      end
      if change ~= 0 then
        debt = debt + change
        if debt <= 0 then
          debt = 0
          later(function() return call('DEL', key) end)
        else
          local slack = -debt % pace
          local drains = (debt + slack) / pace
          local value = kind == 'bucket' and slack or time + drains
          if kind == 'bucket' and slack == 0 then
            value = '0'
          elseif kind == 'fast' then
            drains = longest
            if pace > 1 then
              value = string.format('%.0f:%.0f', value, slack)
            end
          end
          later(function() return call('SET', key, value, 'PX', drains) end)
        end
      end
      tell(debt)

    elseif kind == 'kept' then
      local debt, taken, since, by, per, limit = 0, 0, now, pace, tick, most
      if stored then
        taken, since, by, per, limit = string.match(stored, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
        taken, since, by, per, limit = taken + 0, since + 0, by + 0, per + 0, limit + 0
      end
      local function drained(time)
        return ticks((time - since) * by, per)
      end
      if drained(now) < taken then
        debt = taken - drained(now)
      end
      if since > now or debt > limit then
        debt = math.min(taken, limit)
        taken, since = debt, now
      end
      local unchanged = by == pace and per == tick and limit == most
      local change = 0
      if more > 0 then
        change = math.max(math.min(most - debt, more * unit), 0)
        forgiven = math.max(forgiven, more - ticks(change, unit))
        if change > 0 and (not unchanged or debt == 0 or (now - since) * by > 4503599627370496) then
          taken, since, by, per, limit = debt, now, pace, tick, most
        end
      elseif unchanged and since <= latest then
        local own = told + drained(math.min(soonest, now)) - drained(now)
        local at_most = told + drained(math.min(latest, now)) - drained(now)
        change = -math.min(remains(own, at_most, cost * unit, debt, unit), -more * unit, debt)
      end
      debt, taken = debt + change, taken + change
      if debt == 0 then
        taken, since, by, per = 0, now, pace, tick
      end
      if change ~= 0 and debt == 0 then
        later(function() return call('DEL', key) end)
      elseif change ~= 0 then
        local value = string.format('%.0f:%.0f:%.0f:%.0f:%.0f', taken, since, by, per, limit)
        local lives = math.ceil((taken * per / by - (now - since)) / 1000) + 1
        later(function() return call('SET', key, value, 'PX', lives) end)
      end
      tell(taken)
      tell(now - since)
      tell(by)
      tell(per)

    elseif kind == 'window' or kind == 'calendar' then
      local length, apart = pace, pace
      if kind == 'calendar' then
        local time = ticks(now, 1000)
        if time < pace or time >= tick then
          return {0, time}
        end
        local from, till = pace, unit
        if time >= longest + 0 then
          from, till = longest + 0, tick
        elseif time >= unit then
          from, till = unit, longest + 0
        end
        longest, length = till - time, till - from
        apart = length / 2
      end
      -- estimates end with their window, so one that is there was taken in this window
      local there = estimates and not settled and call('ZSCORE', estimates, estimate)
      local ours = left > 0 and (there or same(ticks(now, 1000) + left, told, apart))
      if there then
        later(function() return call('ZREM', estimates, estimate) end)
      elseif estimates and not settled and (ours or ticks(now, 1000) < ticks(soonest, 1000) + told) then
        more = actual -- the estimate was taken back
      end
      if more > 0 and stored and (left < 0 or left > longest + 0) then
        left = longest + 0
      end
      local used = left > 0 and stored + 0 or 0
      local change = 0
      if more > 0 then
        change = charged(most - used, more)
      elseif ours then
        change = math.max(more, -used)
      end
      used = used + change
      if change ~= 0 and used == 0 then
        later(function() return call('DEL', key) end)
        left = 0
      elseif change ~= 0 and left > 0 then
        later(function() return call('INCRBY', key, change) end)
      elseif change > 0 then
        later(function() return call('SET', key, used, 'PX', longest) end)
        left = longest + 0
      end
      tell(used)
      tell(used > 0 and math.max(left, 0) or 0)
      if kind == 'calendar' then
        tell(length)
      end

    else
      local state = left > 0 and stored + 0 or 0
      local current = state % (most + 1)
      local last, rest = (state - current) / (most + 1), left - pace
      local rolled = rest <= 0
      if rolled then
        last, current, rest = current, 0, left
      end
      local ends, back, change = ticks(now, 1000) + rest, 0, 0
      if more > 0 then
        local room = capacity * pace - last * rest
        change = charged((room - room % pace) / pace - current, more)
        current = current + change
      elseif left > 0 and same(ends - pace, told, pace) then
        back = math.min(-more, last)
        last = last - back
        if not rolled then
          back = back * (most + 1)
        end
      elseif left > 0 and same(ends, told, pace) then
        back = math.min(-more, current)
        current = current - back
      end
      if change > 0 and rolled then
        if rest <= 0 then
          rest = pace
        end
        later(function() return call('SET', key, last * (most + 1) + current, 'PX', rest + pace) end)
      elseif change > 0 then
        later(function() return call('INCRBY', key, change) end)
      elseif back > 0 and current == 0 and last == 0 then
        later(function() return call('DEL', key) end)
      elseif back > 0 and current == 0 and not rolled then
        -- the value before this window's first request
        later(function() return call('SET', key, last, 'PX', rest) end)
      elseif back > 0 then
        later(function() return call('INCRBY', key, -back) end)
      end
      tell(last)
      tell(current)
      tell(rest)
    end
  end
end

local changed = settled
if #writes > 0 then
  call('SET', marker, forgiven, 'PX', remembered)
end
for i = 1, #writes do
  changed = writes[i]() ~= 0 or changed
end
if not changed then
  reply[1] = -now
  if #writes > 0 then
    call('DEL', marker)
  end
end
reply[2] = settled and settled + 0 or forgiven
return reply
