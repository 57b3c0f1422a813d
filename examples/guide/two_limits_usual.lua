-- Allows so many calls a minute and so many a day.
-- KEYS: the minute's counter, the day's counter; ARGV: the limit and the time to live of each
for i, key in ipairs(KEYS) do
  local n = redis.call('INCR', key)
  if n == 1 then
    redis.call('PEXPIRE', key, ARGV[2 * i])
  end
  if n > tonumber(ARGV[2 * i - 1]) then
    return 0
  end
end
return 1
