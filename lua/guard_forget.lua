-- Idempotency: forgets what a key stands for, whatever became of it.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- returns  1, or 0 when there was none
-- effects  DEL
local key = KEYS[1]

return redis.call('DEL', key)
