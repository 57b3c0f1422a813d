-- Stock: forgets an item, and which buyers have what of it.
--
-- KEYS[1]  the record
-- returns  1, or 0 if there is none
-- effects  DEL
local key = KEYS[1]
return redis.call('DEL', key)
