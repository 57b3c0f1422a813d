-- Stock: returns the units of leases that have ended. It looks at 256 places at
-- the most.
--
-- KEYS[1]  the record, as stock_open.lua keeps it
-- returns  1: it is to be called again; 0: no other lease has ended; -3: no such
--          item; -4: the record disagrees with itself
-- effects  PEXPIRE, HSET, and by pcall HDEL, where there is something to do: units
--          of ended leases, holes, and leases that end later than they can, since
--          the clock was set back
local key = KEYS[1]

local call, pcall = redis.call, redis.pcall
local was = call('HMGET', key, 'until', 'left', 'held', 'first', 'last')
local ends, left, held = tonumber(was[1] or ''), tonumber(was[2] or ''), tonumber(was[3] or '')
local first, last = tonumber(was[4] or ''), tonumber(was[5] or '')
if not ends then
  return (was[1] or left) and -4 or -3
elseif not (left and held and first and last) then
  return -4
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if ends <= now then
  return -3
end

local bound, at, kept, live = math.min(first + 256, last), first, nil, false
local fields, gone = {}, {}
local function set(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
while at < bound and not live do
  local names = {}
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
        for _, field in ipairs({ names[i], 'b:' .. buyer }) do
          set(field, '')
          gone[#gone + 1] = field
        end
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
end
local head = kept or at
if held < 0 or held > 0 and head == last then
  return -4
end
if head > first or #fields > 0 then
  call('PEXPIRE', key, ends - now) -- a script that has written may do so on a full server
  call('HSET', key, 'left', left, 'held', held, 'first', head, unpack(fields))
end
if #gone > 0 then
  pcall('HDEL', key, unpack(gone))
end
return at == bound and at < last and 1 or 0
