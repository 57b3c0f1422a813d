-- Gives a lock back once. KEYS[1] the lock, ARGV[1] the owner
local key, owner = KEYS[1], ARGV[1]
if redis.call('HEXISTS', key, owner) == 0 then
  return -1
end
local depth = redis.call('HINCRBY', key, owner, -1)
if depth == 0 then
  redis.call('DEL', key)
end
return depth
