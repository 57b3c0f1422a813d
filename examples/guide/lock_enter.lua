-- Takes a lock, or takes it once more. KEYS[1] the lock, ARGV[1] the owner, ARGV[2] time to live in milliseconds
local key, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', key) == 1 and redis.call('HEXISTS', key, owner) == 0 then
  return 0
end
local depth = redis.call('HINCRBY', key, owner, 1)
redis.call('PEXPIRE', key, ttl)
return depth
