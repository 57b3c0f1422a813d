-- Gives a subject policies in place of the others, ends that, or reports them.
--
-- KEYS[1]  the policies, as text
-- ARGV[1]  for how long, in milliseconds; 0 ends it, -1 only asks
-- ARGV[2]  the text; it is not needed otherwise
-- returns  {the text that there was, or nothing; for how long more, in milliseconds}
-- effects  to give SET with PX, to end DEL
local key, duration, text = KEYS[1], ARGV[1] + 0, ARGV[2]

local call = redis.call
local was, left = redis.pcall('GET', key), call('PTTL', key)
if type(was) == 'table' and not string.find(was.err, 'WRONGTYPE', 1, true) then
  return was
elseif type(was) ~= 'string' or left < 1 then -- neap gives each a time to live; 0 is its end
  was, left = '', 0
end
if duration > 0 then
  call('SET', key, text, 'PX', duration)
elseif duration == 0 then
  call('DEL', key)
end
return {was, left}
