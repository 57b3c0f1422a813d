-- Stock: reports which buyers have what, some buyers at a time.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  cursor: 0 at first, and then what was returned
-- ARGV[2]  about how many fields to look at
-- returns  the next cursor, 0 if there are no more; and for each buyer the buyer, the id,
--          the quantity, and the milliseconds until the lease ends, or -1 if the units
--          are sold; or -3: no such item; -4: the counts in the record disagree
-- effects  none
local key, cursor, some = KEYS[1], ARGV[1], ARGV[2]

local call = redis.call
local ends = call('HMGET', key, 'until')[1]
if not ends then
  return call('HLEN', key) > 0 and -4 or -3
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if not tonumber(ends) then
  return -4
elseif ends + 0 <= now then
  return -3
end
local page = call('HSCAN', key, cursor, 'COUNT', some)
local found, all = { page[1] }, page[2]
for i = 1, #all, 2 do
  local buyer, record = string.match(all[i], '^b:(.+)$'), all[i + 1]
  if buyer and record ~= '' then
    local id, count, place = string.match(record, '^(%S+) (%d+) (%d+) %S+$')
    if not id then
      return -4
    end
    local left = -1
    if place ~= '0' then
      local span, lease = string.match(call('HMGET', key, 'q:' .. place)[1] or '', '^(%d+) (%d+) ')
      if not span then
        return -4
      end
      left = math.min(span - now, lease + 0)
    end
    if left == -1 and place == '0' or left > 0 then
      found[#found + 1] = buyer
      found[#found + 1] = id
      found[#found + 1] = count + 0
      found[#found + 1] = left
    end
  end
end
return found
