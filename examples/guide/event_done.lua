-- Notes that the event is done, if it still belongs to this delivery.
-- KEYS[1] the event, ARGV[1] the token of event_begin.lua, ARGV[2] how long to remember, in milliseconds
local state = redis.call('GET', KEYS[1])
if state == 'done' then
  return 1
elseif state ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], 'done', 'PX', ARGV[2])
return 1
