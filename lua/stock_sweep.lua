-- Stock: returns the units of leases that have ended. It looks at 256 places at most.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- ARGV[1]  place to go on from: 0 at first, and then what was returned
-- returns  the place to go on from; 0: no other lease has ended; -3: no such item; -4:
--          the counts in the record disagree
-- effects  PEXPIRE, HSET, and by pcall HDEL, if there is something to do: units of ended
--          leases, holes, and leases that end later than they can because the clock was
--          set back
local key, from = KEYS[1], ARGV[1] + 0

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'until', 'left', 'held', 'first', 'last')
local ends, left, held = tonumber(was[1] or ''), tonumber(was[2] or ''), tonumber(was[3] or '')
local first, last = tonumber(was[4] or ''), tonumber(was[5] or '')
if not ends then
  return (was[1] or left) and -4 or -3
elseif not (left and held and first and last) or first % 1 ~= 0 or last % 1 ~= 0
  or first < 1 or first > last or last >= 100000000000000 then
  return -4
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if ends <= now then
  return -3
end

from = math.max(from, first)
local bound, at, kept, live = math.min(from + 256, last), from, nil, false
local fields, gone = {}, {}
local function set(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
local function clear(field)
  set(field, '')
  gone[#gone + 1] = field
end
while at < bound and not live do
  local names, lapsed, theirs = {}, {}, {}
  for place = at, math.min(at + 16, bound) - 1 do
    names[#names + 1] = 'q:' .. place
  end
  for i, entry in ipairs(call('HMGET', key, unpack(names))) do
    if entry and entry ~= '' then
      local span, lease, count, buyer = string.match(entry, '^(%d+) (%d+) (%d+) (%S+)$')
      if not span then
        return -4
      end
      span = span - now
      if span <= 0 then
        left, held = left + count, held - count
        clear(names[i])
        lapsed[#lapsed + 1], theirs[#theirs + 1] = at, 'b:' .. buyer
      else
        kept = kept or at
        live = span <= lease + 0
        if live then
          break
        end
        set(names[i], string.format('%.0f %s %s %s', now + lease, lease, count, buyer))
      end
    end
    at = at + 1
  end
  for i, record in ipairs(#theirs > 0 and call('HMGET', key, unpack(theirs)) or {}) do
    local place = string.match(record or '', '^%S+ %d+ (%d+) ')
    if record and (not place or place + 0 == lapsed[i]) then
      clear(theirs[i])
    end
  end
end
local head = from == first and (kept or at) or first
if held < 0 or held > 0 and head == last then
  return -4
end
if head > first or #fields > 0 then
  call('PEXPIRE', key, ends - now) -- a script that has written once may write again on a full server
  call('HSET', key, 'left', left, 'held', held, 'first', head, unpack(fields))
end
if #gone > 0 then
  pcall('HDEL', key, unpack(gone))
end
return at == bound and at < last and at or 0
