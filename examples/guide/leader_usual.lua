-- Returns how many points the leader has. KEYS[1] the name of the leader's key
return redis.call('GET', redis.call('GET', KEYS[1]))
