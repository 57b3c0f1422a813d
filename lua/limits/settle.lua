-- Changes what a decision took into what it should have taken. If that is less, the
-- difference is given back, as far as it is left; if it is more, the difference is
-- charged now. A refund settles to nothing.
--
-- An estimate that is missing before the end of its window was taken back. Then the
-- present window is charged all that was used. That is the estimate's own window, or the
-- one that began when its own had become empty.
--
-- KEYS[i]  the states of the policies; a marker, by which this changes something once,
--          however often it is called; and the estimates of windows
-- ARGV[i]  in turn: how many permits the decision should have taken; TIME at which they were
--          taken, at the soonest and at the latest, and TIME now, at the soonest, in
--          microseconds (if TIME is earlier, the caller knows the clock of another server);
--          how many policies there are (0 only asks for the time); how long the marker
--          lives, in milliseconds; and the name of the estimate, or nothing. For each policy
--          eleven: its kind, and its six numbers as limits/take.lua takes them; the units of
--          a permit; how many permits were taken; what the decision reported (for bucket,
--          fast and kept the debt afterwards; for window, calendar and sliding the rest of
--          the window in milliseconds; for log the mark; it is not needed to charge more,
--          except with estimates); and the index in KEYS of the estimates, or 0
-- returns  {TIME in microseconds, permits that were forgiven}, and then for each policy the
--          numbers of its state as limits/take.lua tells them, none for a log. TIME is
--          negative if nothing changed, now or when the marker was set. {TIME}, negative,
--          if only the time was asked for, or if the caller knows the clock of another
--          server; {0, TIME in milliseconds} if TIME is in no window of a calendar
-- effects  SET of the marker with PX, first; SET with PX, INCRBY, LREM, PEXPIRE, ZREM of an
--          estimate, and DEL of what is then empty, of estimates that are left when a window
--          begins, or of the marker if nothing changed;
--          nothing if the marker is there
local reply, size = {now, 0}, 2
for i = 1, count do
  local a, key = 11 * i - 4, KEYS[i]
  local kind, n1, n2, n3, n4 = ARGV[a + 1], ARGV[a + 2] + 0, ARGV[a + 3] + 0, ARGV[a + 4] + 0, ARGV[a + 5] + 0
  local n5, n6, unit = ARGV[a + 6] + 0, ARGV[a + 7] + 0, ARGV[a + 8] + 0
  local cost, told, estimates = ARGV[a + 9] + 0, ARGV[a + 10] + 0, KEYS[ARGV[a + 11] + 0]
  local more = settled and 0 or actual - cost -- below 0, permits are given back

  local first, second, third, fourth, width
  if kind == 'bucket' then
    width, first, second = 1, bucket_settle(key, more, cost, told, n2, n3, unit)
  elseif kind == 'fast' then
    width, first, second = 1, fast_settle(key, more, cost, told, n2, n3, unit, n4, n5)
  elseif kind == 'kept' then
    width, first, second, third, fourth = 4, kept_settle(key, more, cost, told, n2, n3, n4, unit)
  elseif kind == 'window' then
    width, first, second = 2, window_settle(key, more, told, n2, n2, n3, estimates, estimate)
  elseif kind == 'calendar' then
    local time = ticks(now, 1000)
    local which, from, till = calendar_at(time, n2, n3, n4, n5)
    if not which then
      return {0, time}
    end
    width, first, second = 3, window_settle(key, more, told, till - time, (till - from) / 2, n6, estimates, estimate)
    third = till - from
  elseif kind == 'sliding' then
    width, first, second, third = 3, sliding_settle(key, more, told, n1, n2, n3)
  else
    log_settle(key, more, told, n2)
    width, first = 0, 0
  end
  if not first then
    return type(second) == 'table' and second or redis.error_reply('FOREIGN the key holds no record of this policy')
  end
  for place = 1, width do
    reply[size + place] = place == 1 and first or place == 2 and second or place == 3 and third or fourth
  end
  size = size + width
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
