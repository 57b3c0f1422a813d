-- Stock: gives units back, whether held or sold. They are back when each call that was
-- granted them has given them back.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  buyer
-- ARGV[2]  id
-- ARGV[3]  token, or empty: for all calls
-- returns  1: the units are back; 2: this call's claim is back, and another call still
--          has one; 0: there was none; -3: no such item; -4: the counts in the record
--          disagree
-- effects  1: PEXPIRE, HSET, and by pcall HDEL; 2: PEXPIRE, HSET
local key, buyer, id, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local call, pcall = redis.call, redis.pcall
local mine = 'b:' .. buyer
local was = call('HMGET', key, 'until', 'units', 'left', 'held', 'sold', mine, 'first')
local ends, units, record = tonumber(was[1] or ''), tonumber(was[2] or ''), was[6]
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
elseif not record or record == '' then
  return 0
end
local who, count, place, tokens = string.match(record, '^(%S+) (%d+) (%d+) (%S+)$')
if not who then
  return -4
elseif who ~= id then
  return 0
end

local hole, first = nil, tonumber(was[7] or '')
if place ~= '0' then
  hole = 'q:' .. place
  local span = string.match(call('HMGET', key, hole)[1] or '', '^(%d+) ')
  if not span then
    return -4
  elseif span + 0 <= now then
    return 0
  end
end
if token ~= '' then
  local from, to = string.find(tokens, token, 1, true)
  if tokens == '*' then
    return 2
  elseif not from then
    return 0
  elseif #tokens > #token then
    if from > 1 then
      tokens = string.sub(tokens, 1, from - 2) .. string.sub(tokens, to + 1)
    else
      tokens = string.sub(tokens, to + 2)
    end
    call('PEXPIRE', key, ends - now)
    call('HSET', key, mine, who .. ' ' .. count .. ' ' .. place .. ' ' .. tokens)
    return 2
  end
end

count = count + 0
if hole then
  held = held - count
  if place + 0 == first then
    first = first + 1
  end
else
  sold = sold - count
end
if held < 0 or sold < 0 or not first then
  return -4
end
call('PEXPIRE', key, ends - now) -- a script that has written once may write again on a full server
call('HSET', key, 'left', left + count, 'held', held, 'sold', sold, 'first', first, mine, '', hole or mine, '')
pcall('HDEL', key, mine, hole or mine)
return 1
