local actual, soonest, latest, sent, count = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local remembered, estimate = ARGV[6], ARGV[7]
if count == 0 or now < sent then
  return {-now}
end
local marker = KEYS[count + 1]
local settled = call('GET', marker)
local writes, forgiven = {}, 0

local function later(write)
  writes[#writes + 1] = write
end

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
  local off = min((length - (last - first + moved)) / 2, 10000)
  return off > 0 and first - moved - off < ends and ends < last + off
end

-- Returns how many of some permits find room; the others are forgiven.
local function fitting(room, permits)
  local fit = max(min(room, permits), 0)
  forgiven = max(forgiven, permits - fit)
  return fit
end

-- Returns what is left of a cost in a debt, which is from own to at_most. The oldest
-- drains first: while any of this cost is left, all that was taken after it is there as a
-- whole.
local function remains(own, at_most, whole_cost, debt, unit)
  if own <= 0 or debt <= 0 then
    return 0
  end
  if own < whole_cost and at_most - own < unit then
    -- Younger costs are whole permits. That shows how much has drained better than
    -- the caller's estimate of this clock does.
    local younger = max(debt - min(at_most, whole_cost), 0)
    own = max(debt - younger - -younger % unit, own)
  end
  return min(own, whole_cost)
end

-- Returns a debt after some permits more, or after what is left of fewer. told is the debt as
-- the decision left it.
local function settled_debt(debt, more, cost, told, drain, most, unit, tick)
  if more > 0 then
    local change = max(min(most - debt, more * unit), 0)
    forgiven = max(forgiven, more - ticks(change, unit))
    return debt + change
  end
  local time = ticks(now, tick)
  local own = told - max(time - ticks(soonest, tick), 0) * drain
  local at_most = told - max(time - ticks(latest, tick), 0) * drain
  return max(debt - min(remains(own, at_most, cost * unit, debt, unit), -more * unit), 0)
end
