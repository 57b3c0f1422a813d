-- Idempotency: forgets the work behind a key, however it ended.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- returns  1, or 0 if there was none
-- effects  DEL
local key = KEYS[1]

return redis.call('DEL', key)
