-- Stock: puts more units in, once for each id.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  units
-- ARGV[2]  id
-- ARGV[3]  the most units that there may be in all
-- returns  1: they are in; 0: they were in before; -1: there would be too many; -3: no
--          such item; -4: the counts in the record disagree; -5: the id has another
--          number of units
-- effects  1: PEXPIRE, HSET
local key, more, id, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3] + 0

local call = redis.call
local was = call('HMGET', key, 'until', 'units', 'left', 'held', 'sold', 'r:' .. id)
local ends, units = tonumber(was[1] or ''), tonumber(was[2] or '')
if not ends then
  return (was[1] or units) and -4 or -3
end
local left, held, sold = tonumber(was[3] or ''), tonumber(was[4] or ''), tonumber(was[5] or '')
if not (units and left and held and sold) or left < 0 or held < 0 or sold < 0 or left + held + sold ~= units then
  return -4
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if ends <= now then
  return -3
elseif was[6] then
  return was[6] == more and 0 or -5
elseif units + more > limit then
  return -1
end
call('PEXPIRE', key, ends - now)
call('HSET', key, 'units', string.format('%.0f', units + more), 'left', string.format('%.0f', left + more),
    'r:' .. id, more)
return 1
