-- Stock: gives units to a buyer, until a lease ends or for good. The same call may be
-- made again: it renews the lease, or sells what was held. What has lapsed is granted
-- anew.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  buyer
-- ARGV[2]  id
-- ARGV[3]  quantity
-- ARGV[4]  lease, in milliseconds; 0: for good; empty: for good, by a confirmation, which
--          is not refused because of too many calls
-- ARGV[5]  token
-- returns  1: held; 2: sold; 3 and 4: the same, and another call was granted it before;
--          -1: there are not as many; -2: the buyer has another id; -3: no such item;
--          -4: the counts in the record disagree; -5: the id has another quantity; -6: some
--          leases may have ended: call stock_sweep.lua, and then this again; -8: as many
--          calls have it as can be told apart
-- effects  granted: HSET, after a PEXPIRE if there was something, and by pcall HDEL of
--          what is no longer there; denied: nothing. PEXPIRE of a record that would live
--          for longer than until
local key, buyer, id, quantity, lease, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local call, pcall, tonumber = redis.call, redis.pcall, tonumber
local confirms = lease == ''
if confirms then
  lease = '0'
end
local mine = 'b:' .. buyer
local was
if lease == '0' then -- units that are sold need no place in the queue
  was = call('HMGET', key, 'until', 'units', 'left', 'held', 'sold', mine)
else
  was = call('HMGET', key, 'until', 'units', 'left', 'held', 'sold', mine, 'first', 'last')
end
local ends, units, left, sold = tonumber(was[1]), tonumber(was[2]), tonumber(was[3]), tonumber(was[5])
local held = was[4] == '0' and 0 or tonumber(was[4]) -- tonumber costs as much as reading a field
if not ends then
  return (was[1] or units) and -4 or -3
elseif not (units and left and held and sold) or left < 0 or held < 0 or sold < 0 or left + held + sold ~= units then
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

local record, wanted = was[6], quantity == '1' and 1 or quantity + 0
local first, last, before, hole = was[7], was[8], nil, nil
if lease ~= '0' then
  first = tonumber(first)
  if not first or not last then
    return -4
  end
end
if record and record ~= '' then
  local who, count, place, tokens = string.match(record, '^(%S+) (%d+) (%d+) (%S+)$')
  if not who then
    return -4
  end
  if place ~= '0' then
    local at = call('HMGET', key, 'q:' .. place, 'first')
    local span = string.match(at[1] or '', '^(%d+) ')
    count, first = count + 0, tonumber(at[2])
    if not span or not first or held < count then
      return -4
    end
    hole, held, left = 'q:' .. place, held - count, left + count
    if place + 0 == first then
      first = first + 1
    end
    if span + 0 > now then
      before = tokens
    end
  else
    before = tokens
  end
  if before then
    if who ~= id then
      return -2
    elseif count + 0 ~= wanted then
      return -5
    elseif place == '0' then
      lease = '0'
      sold, left = sold - count, left + count
      if sold < 0 then
        return -4
      end
    end
  end
end
if left < wanted then
  if held > 0 then
    first = first or tonumber(call('HMGET', key, 'first')[1]) or ''
    local span, longest = string.match(call('HMGET', key, 'q:' .. first)[1] or '', '^(%d+) (%d+) ')
    if not span or span + 0 <= now or span - now > longest + 0 then
      return -6
    end
  end
  return -1
end

local tokens = token
if before == '*' then
  tokens = before
elseif before and string.find(before, token, 1, true) then
  tokens = before
elseif before then
  if #before < 180 then
    tokens = before .. ',' .. token
  elseif confirms then
    tokens = '*'
  else
    return -8
  end
end
if lease == '0' then
  if tokens ~= before or hole then
    if record then
      call('PEXPIRE', key, most)
    end
    local value = id .. ' ' .. quantity .. ' 0 ' .. tokens
    if hole then
      call('HSET', key, 'left', left - wanted, 'held', held, 'sold', sold + wanted, mine, value,
        'first', first, hole, '')
    else
      call('HSET', key, 'left', left - wanted, 'sold', sold + wanted, mine, value)
    end
  end
else
  if record then
    call('PEXPIRE', key, most)
  end
  call('HSET', key, 'left', left - wanted, 'held', held + wanted,
    mine, id .. ' ' .. quantity .. ' ' .. last .. ' ' .. tokens,
    'q:' .. last, string.format('%.0f %s %s %s', now + lease, lease, quantity, buyer),
    'first', first, 'last', last + 1, hole or 'first', hole and '' or first)
end
if hole then
  pcall('HDEL', key, hole)
end
return (lease == '0' and 2 or 1) + (before and string.sub(tokens, 1, #token) ~= token and 2 or 0)
