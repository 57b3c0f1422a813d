-- Moves points from one player to another.
--
-- KEYS[1]  the points of the player that gives
-- KEYS[2]  the points of the player that gets
-- ARGV[1]  how many points, 1 or more
-- ARGV[2]  time to live in milliseconds
-- returns  how many points the giver has left, or -1 if nothing was moved: the giver
--          has too few, there are none to move, or both keys are the same
-- effects  SET with PX, twice, if points are moved
local gives, gets = tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(redis.call('GET', KEYS[2]) or 0)
local points = tonumber(ARGV[1])
if points < 1 or gives < points or KEYS[1] == KEYS[2] then
  return -1
end
redis.call('SET', KEYS[1], gives - points, 'PX', ARGV[2])
redis.call('SET', KEYS[2], gets + points, 'PX', ARGV[2])
return gives - points
