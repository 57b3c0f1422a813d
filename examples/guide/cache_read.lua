-- Reads an entry, and tells one caller to rebuild it before it is gone.
-- KEYS[1] the entry, KEYS[2] that it is being rebuilt
-- ARGV[1] how much of its life is left for that, ARGV[2] how long one may take, both in milliseconds
-- returns the value or nil, and 1 for who is to rebuild it
local value = redis.call('GET', KEYS[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1])
  and redis.call('SET', KEYS[2], 1, 'NX', 'PX', ARGV[2]) then
  return {value, 1}
end
return {value, 0}
