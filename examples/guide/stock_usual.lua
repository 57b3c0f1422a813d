-- Sells a unit and returns 1, or returns 0 if there is none left.
-- KEYS[1] the number that is left, ARGV[1] the number at first
local left = tonumber(redis.call('GET', KEYS[1]) or ARGV[1])
if left == 0 then
  return 0
end
redis.call('SET', KEYS[1], left - 1)
return 1
