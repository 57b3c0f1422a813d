-- Locks: takes a process out of the line of a lock that it does not wait for any more. If
-- the lock is free and waits for it, all that wait are told.
--
-- KEYS[1]  the record, as lock_acquire.lua keeps it
-- ARGV[1]  the process
-- returns  1, or 0 if it is not in line
-- effects  HDEL, or HSET by pcall; then, by pcall, PUBLISH or SPUBLISH
local key, process = KEYS[1], ARGV[1]

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'owner', 'wake')
local line = was[2] or ''
local first = string.match(line, '^%u+ (%w+) %d+')
local rest, n = string.gsub(line, ' ' .. process .. ' %d+', '')
if n == 0 then
  return 0
end
if not was[1] and first == process then
  call('HDEL', key, 'wake')
  if string.sub(line, 1, 8) == 'SPUBLISH' then
    pcall('SPUBLISH', key, 'free')
  else
    pcall('PUBLISH', key, 'free')
  end
elseif string.find(rest, ' ', 1, true) then
  pcall('HSET', key, 'wake', rest)
else
  call('HDEL', key, 'wake')
end
return 1
