-- Forgets a subject: the states of all policies at once.
--
-- KEYS[i]  a policy's state, or the estimates of a window
-- returns  how many there were
-- effects  DEL
return redis.call('DEL', unpack(KEYS))
