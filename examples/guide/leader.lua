-- Returns how many points the leader has.
--
-- KEYS[1]  the game: a field for each player, and one that names the leader
-- returns  the points, or nil while there is no leader
-- effects  none
local name = redis.call('HGET', KEYS[1], 'leader')
return name and redis.call('HGET', KEYS[1], name)
