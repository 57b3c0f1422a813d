-- Reads an entry, and tells one caller to rebuild it before it is gone.
-- KEYS[1] the entry, KEYS[2] the mark that a caller is rebuilding it
-- ARGV[1] how much of the entry's life is left when it is rebuilt, in milliseconds
-- ARGV[2] how long a rebuild may take, in milliseconds
-- returns the value or nil, and 1 for the caller that is to rebuild it, otherwise 0
local value = redis.call('GET', KEYS[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1])
  and redis.call('SET', KEYS[2], 1, 'NX', 'PX', ARGV[2]) then
  return {value, 1}
end
return {value, 0}
