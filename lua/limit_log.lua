-- Sliding log: a list of the microseconds at which permits were taken, one entry for each
-- permit, oldest first.
--
-- The pivot is the entry that the request's last permit would push out of the limit. A
-- request is denied while the pivot is younger than the window.
--
-- KEYS[1]  the log
-- ARGV[1]  cost; 0 asks and takes nothing
-- ARGV[2]  limit
-- ARGV[3]  window, in microseconds
-- ARGV[4]  time to live of the log, in milliseconds: two windows, so that it is set again
--          once in each window and not with every entry
-- ARGV[5]  index of the pivot: cost - limit - 1. If nothing is taken, cost is the cost
--          that is asked about. For a cost of 0 the index is beyond any log
-- returns  granted with a cost: used + (limit + 1) * next and now, as a string of two
--          numbers. Otherwise {used, next, retry, reset}; if denied, the first is
--          -1 - used. used is how many of the newest entries there are afterwards, up to
--          the limit. now, in microseconds, is the mark of the new entries. The others
--          are microseconds: next until the oldest of the used entries leaves, retry until
--          the same request is granted, reset until all of them have left
-- effects  granted with a cost: RPUSH, PEXPIRE (if it fails, LTRIM undoes the RPUSH), and
--          LPOP or LTRIM of what has left; denied: nothing, or PEXPIRE if the time to
--          live is too long; in both cases, entries later than now are first rewritten as
--          of now, by RPUSH, LTRIM and PEXPIRE
local key = KEYS[1]
local cost, limit, window, longest, reach = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4], ARGV[5]

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local newest = call('LINDEX', key, '-1')
if newest and newest - now > 0 then
  newest = now
  if cost > 0 then
    local entries = call('LRANGE', key, '0', '-1')
    local count = #entries
    for i = 1, count do
      entries[i] = math.min(entries[i], now)
    end
    -- unpack takes at most 8,000 values
    for first = 1, count, 4000 do
      call('RPUSH', key, unpack(entries, first, math.min(first + 3999, count)))
    end
    call('LTRIM', key, count, '-1')
    call('PEXPIRE', key, longest)
  end
end

local pivot = call('LINDEX', key, reach)
local denied = pivot and pivot + window > now
local granted = cost > 0 and not denied
local size
if granted then
  for first = 1, cost, 4000 do
    -- before any other write: if memory is full, Redis refuses only a script's first
    -- write
    if cost == 1 then
      size = call('RPUSH', key, now)
    else
      local entries = {}
      for i = 1, math.min(cost - first + 1, 4000) do
        entries[i] = now
      end
      size = call('RPUSH', key, unpack(entries))
    end
    if first == 1 and (not newest or newest % window > now % window or now - newest >= window) then
      local set = redis.pcall('PEXPIRE', key, longest)
      if set ~= 1 then
        call('LTRIM', key, '0', -1 - math.min(cost, 4000))
        return set
      end
    end
  end
elseif cost == 1 then
  size = limit -- in a full log, no entry before the pivot has left the window
else
  size = call('LLEN', key)
end

local oldest, gone = denied and cost == 1 and pivot or call('LINDEX', key, '0') or now, 0
if oldest + window <= now then
  -- few entries leave between two requests, so take growing strides before halving
  local probe, stride, high = 1, 2, size
  gone = 1
  while gone < high do
    local entry = call('LINDEX', key, probe)
    if entry + window <= now then
      gone, probe, stride = probe + 1, probe + stride, 2 * stride
    else
      high, probe, oldest = probe, probe, entry
    end
    if probe >= high then
      probe = (gone + high - (gone + high) % 2) / 2
    end
  end
  if granted and gone == 1 then
    call('LPOP', key)
  elseif granted then
    call('LTRIM', key, gone, '-1')
  end
end
local used = size - gone

if granted then
  -- an entry that was edited may lie ahead
  return string.format('%.0f %.0f', used + (limit + 1) * (math.min(now, oldest) + window - now), now)
end
if used == 0 then
  return {0, 0, 0, 0}
end
if used > limit then
  oldest, used = call('LINDEX', key, -limit), limit
end
local next, reset = math.min(oldest, now) + window - now, newest + window - now
if not denied then
  return {used, next, 0, reset}
end
local left = cost > 0 and call('PTTL', key) or 0
if left < 0 or left > longest + 0 then
  call('PEXPIRE', key, longest)
end
return {-1 - used, next, math.min(pivot, now) + window - now, reset}
