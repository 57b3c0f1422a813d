-- Sells a unit, and returns 1, or 0 when there is none left.
-- KEYS[1] how many are left, ARGV[1] how many there were at first
local left = tonumber(redis.call('GET', KEYS[1]) or ARGV[1])
if left == 0 then
  return 0
end
redis.call('SET', KEYS[1], left - 1)
return 1
