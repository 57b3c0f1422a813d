-- Idempotency: reports what is known about a key.
--
-- KEYS[1]  the record, as guard_begin.lua keeps it
-- returns  the record's line; the number of bytes after it; the milliseconds until the
--          lease ends, or 0; the milliseconds that the record has left to live, or -1:
--          for ever. Nothing if there is no record
-- effects  none
local key = KEYS[1]

local call = redis.call
local record = call('GET', key)
if not record then
  return false
end
local line, ends, lease = string.match(record, '^(%l+ %d+ %d+ (%d+) (%d+) %S+ %S+)\n')
if not line then
  return redis.error_reply('ERR the key holds no record of neap')
end
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local left = math.max(math.min(ends - now, lease + 0), 0)
return { line, #record - #line - 1, left, call('PTTL', key) }
