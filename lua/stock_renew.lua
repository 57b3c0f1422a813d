-- Stock: renews leases that have not lapsed.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  lease, in milliseconds
-- ARGV[i]  from the second on, three for each reservation, at most 64 reservations: buyer;
--          id; token, or empty: any call that was granted it
-- returns  for each reservation 1: renewed; 2: it is sold; -1: it has lapsed, or was given
--          back; -3: no such item; -4: the counts in the record disagree
-- effects  1: PEXPIRE, HSET, and by pcall HDEL
local key, lease = KEYS[1], ARGV[1]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function renew(buyer, id, token)
  local was = call('HMGET', key, 'until', 'b:' .. buyer, 'first', 'last')
  local ends, record, first, last = tonumber(was[1] or ''), was[2], tonumber(was[3] or ''), tonumber(was[4] or '')
  if not ends then
    return was[1] and -4 or -3
  elseif ends <= now then
    return -3
  elseif not record or record == '' then
    return -1
  end
  local who, count, place, tokens = string.match(record, '^(%S+) (%d+) (%d+) (%S+)$')
  if not who or not first or not last then
    return -4
  elseif who ~= id or tokens ~= '*' and not string.find(tokens, token, 1, true) then
    return -1
  elseif place == '0' then
    return 2
  end
  local hole = 'q:' .. place
  local span = string.match(call('HMGET', key, hole)[1] or '', '^(%d+) ')
  if not span then
    return -4
  elseif span + 0 <= now then
    return -1
  end
  call('PEXPIRE', key, ends - now) -- a script that has written once may write again on a full server
  call('HSET', key, 'b:' .. buyer, string.format('%s %s %.0f %s', id, count, last, tokens),
    'q:' .. was[4], string.format('%.0f %s %s %s', now + lease, lease, count, buyer),
    'first', place + 0 == first and first + 1 or first, 'last', last + 1, hole, '')
  pcall('HDEL', key, hole)
  return 1
end

local results = {}
for i = 2, #ARGV, 3 do
  local buyer, id, token = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  results[#results + 1] = renew(buyer, id, token)
end
return results
