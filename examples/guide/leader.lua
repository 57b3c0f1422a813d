-- How many points the leader has. KEYS[1] the game: a field a player, and one that names the leader
return redis.call('HGET', KEYS[1], redis.call('HGET', KEYS[1], 'leader'))
