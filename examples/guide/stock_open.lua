-- Puts an item up for sale, once.
-- KEYS[1] the item, ARGV[1] how many, ARGV[2] for how long, in milliseconds
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], 'left', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
