-- Locks: takes a process out of the line of a lock that it does not wait for any more. If
-- the lock is free and waits for it, the lock waits for the next one, which is told.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  the process
-- returns  1, or 0 if it is not in line
-- effects  HDEL, or HSET by pcall; then, by pcall, PUBLISH or SPUBLISH: to the key with the
--          process behind it, or to the key if the line cannot be written
local key, process = KEYS[1], ARGV[1]

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'owner', 'wake')
local line = was[2] or ''
local first = string.match(line, '^%u+ (%w+) %d+')
local rest, n = string.gsub(line, ' ' .. process .. ' %d+', '')
if n == 0 then
  return 0
end
local waited = not was[1] and first == process
local how, next, behind = string.match(rest, '^(%u+) (%w+) %d+(.*)$')
if waited and next then
  local clock = call('TIME')
  rest = string.format('%s %s %.0f%s', how, next, clock[1] * 1000 + math.floor(clock[2] / 1000), behind)
end
if not next or type(pcall('HSET', key, 'wake', rest)) == 'table' then
  call('HDEL', key, 'wake')
  next = nil
end
local channel = next and key .. ':' .. next or key
if waited and string.sub(line, 1, 8) == 'SPUBLISH' then
  pcall('SPUBLISH', channel, 'free')
elseif waited then
  pcall('PUBLISH', channel, 'free')
end
return 1
