-- Stock: reports the counts.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- returns  units, left, held, sold, the milliseconds until the item ends; or -3: no such
--          item; -4: the counts in the record disagree; -6: some leases may have ended:
--          call stock_sweep.lua, and then this again
-- effects  PEXPIRE of a record that would live for longer than until
local key = KEYS[1]

local call = redis.call
local was = call('HMGET', key, 'until', 'units', 'left', 'held', 'sold', 'first')
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
local lives, most = call('PTTL', key), ends - now
if lives < 0 or lives > most + 1000 then
  call('PEXPIRE', key, math.max(most, 1))
end
if most <= 0 then
  return -3
end
if held > 0 then
  local span, lease = string.match(call('HMGET', key, 'q:' .. (was[6] or ''))[1] or '', '^(%d+) (%d+) ')
  if not span or span + 0 <= now or span - now > lease + 0 then
    return -6
  end
end
return { units, left, held, sold, most }
