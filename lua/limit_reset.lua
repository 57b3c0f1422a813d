-- Forgets a subject: every policy's state at once.
--
-- KEYS[i]  the i-th policy's state
-- returns  how many there were
-- effects  DEL
return redis.call('DEL', unpack(KEYS))
