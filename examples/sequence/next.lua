-- Order numbers: takes consecutive numbers, which begin at 1 each day. The time
-- is the server's. The caller says which day it is in the shop, and from when
-- until when. Days never go back: if the clock was set back over midnight, the
-- numbers go on in the later day.
--
-- KEYS[1]  the last number that was taken: <day> <number>
-- ARGV[1]  day, as yyyymmdd
-- ARGV[2]  when the span of that day begins, in seconds since 1970
-- ARGV[3]  when it ends
-- ARGV[4]  how many numbers, 1 or more
-- ARGV[5]  the largest number of a day
-- ARGV[6]  keep, in milliseconds: how long the record outlives this call
-- returns  {day, first number, TIME in milliseconds}. The first number is 0 if
--          the day has no more; the day is 0 if the time is not in its span
-- effects  SET with PX, if numbers were taken
local key, day, from, till = KEYS[1], ARGV[1], ARGV[2] + 0, ARGV[3] + 0
local count, most, keep = ARGV[4] + 0, ARGV[5] + 0, ARGV[6]
assert(count >= 1, 'fewer than one number is asked for')
local call = redis.call
local clock = call('TIME')
local seconds = clock[1] + 0
local now = seconds * 1000 + math.floor(clock[2] / 1000)
if seconds < from or seconds >= till then
  return { 0, 0, now }
end

local last = 0
local record = call('GET', key)
if record then
  local was, number = string.match(record, '^(%d+) (%d+)$')
  if not was then
    return redis.error_reply('ERR the key holds no order number')
  end
  if was + 0 >= day + 0 then
    day, last = was, number + 0
  end
end
if last + count > most then
  return { day + 0, 0, now }
end
call('SET', key, string.format('%s %.0f', day, last + count), 'PX', keep)
return { day + 0, last + 1, now }
