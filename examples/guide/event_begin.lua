-- Begins an event, unless it is done or another delivery is at work on it.
-- KEYS[1] the event, ARGV[1] a random token of this delivery, ARGV[2] lease in milliseconds
local state = redis.call('GET', KEYS[1])
if state == 'done' or state == ARGV[1] then
  return state
elseif state then
  return 'later'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
