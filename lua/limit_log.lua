-- Sliding log: a list of the microseconds at which permits were taken, one entry for each
-- permit, oldest first.
--
-- It lives for two windows, so that its time to live is set once in each window and not
-- with every entry.
--
-- Its parts are files of limits/, and `go test ./lua -update` joins them.
--
-- KEYS[1]  the log
-- ARGV[1]  limit
-- ARGV[2]  window, in microseconds
-- ARGV[3]  time to live of the log, in milliseconds
-- ARGV[4]  cost; -n asks about a cost of n and takes nothing
-- returns  granted with a cost: used + (limit + 1) * next and now, as a string of two
--          numbers. Otherwise {used, next, retry, reset}; if denied, the first is
--          -1 - used. used is how many of the newest entries there are afterwards, up to
--          the limit. now, in microseconds, is the mark of the new entries. The others
--          are microseconds: next until the oldest of the used entries leaves, retry until
--          the same request is granted, reset until all of them have left
-- effects  granted with a cost: RPUSH, PEXPIRE (if it fails, LTRIM undoes the RPUSH), and
--          LPOP or LTRIM of what has left; denied: nothing, or PEXPIRE if the time to
--          live is too long; in both cases, entries later than now are first rewritten as
--          of now, by RPUSH, LTRIM and PEXPIRE
local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if neap never writes it: if it has a sign,
-- an exponent, a space or a leading 0, or is not exact.
local function whole(text)
  local n = tonumber(text)
  if n and n <= 9007199254740992 and (string.find(text, '^[1-9]%d*$') or text == '0') then
    return n
  end
end
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- in microseconds

-- Returns how many entries are in the window, the oldest and the newest of these, how many
-- have left it, and whether the newest lies in the future.
local function log_read(key, length)
  local size = try('LLEN', key)
  if size == 0 then
    return 0, now, now, 0, false
  elseif type(size) ~= 'number' then
    return nil, size
  end
  local oldest, newest = whole(call('LINDEX', key, '0')), whole(call('LINDEX', key, '-1'))
  if not oldest or not newest then
    return nil
  end
  local gone, later = 0, newest > now
  if oldest + length <= now then
    -- few entries leave between two requests, so take growing strides before halving
    local probe, stride, high = 1, 2, size
    gone = 1
    while gone < high do
      local entry = whole(call('LINDEX', key, probe))
      if not entry then
        return nil
      elseif entry + length <= now then
        gone, probe, stride = probe + 1, probe + stride, 2 * stride
      else
        high, probe, oldest = probe, probe, entry
      end
      if probe >= high then
        probe = (gone + high - (gone + high) % 2) / 2
      end
    end
    if gone == size then
      oldest = now
    end
  end
  return size - gone, min(oldest, now), min(newest, now), gone, later
end

-- Appends some of the entries. unpack takes at most 8,000 values.
local function log_push(key, entries, from, till)
  for first = from, till, 4000 do
    call('RPUSH', key, unpack(entries, first, min(first + 3999, till)))
  end
end

-- Rewrites entries that lie in the future as of now.
local function log_heal(key, longest)
  local entries = call('LRANGE', key, '0', '-1')
  local size = #entries
  for place = 1, size do
    entries[place] = min(whole(entries[place]) or now, now)
  end
  log_push(key, entries, 1, size)
  call('LTRIM', key, size, '-1')
  call('PEXPIRE', key, longest)
end

-- Adds a cost above 0, and removes the entries that have left. If the log cannot get its
-- time to live, it adds nothing and returns the error.
local function log_charge(key, cost, newest, gone, empty, length, longest)
  local few = min(cost, 4000)
  local entries = {}
  for place = 1, cost do
    entries[place] = now
  end
  -- before any other write: if memory is full, Redis refuses only a script's first write
  log_push(key, entries, 1, few)
  if empty or newest % length > now % length or now - newest >= length then
    local set = try('PEXPIRE', key, longest)
    if set ~= 1 then
      call('LTRIM', key, '0', -1 - few)
      return set
    end
  end
  log_push(key, entries, few + 1, cost)
  if gone == 1 then
    call('LPOP', key)
  elseif gone > 1 then
    call('LTRIM', key, gone, '-1')
  end
end

-- Cuts the time to live of a log that is not charged.
local function log_keep(key, longest)
  local left = call('PTTL', key)
  if left == -1 or left > longest then
    call('PEXPIRE', key, longest)
  end
end

-- Returns how long until the entry leaves without which a cost has room. If the cost is
-- above the limit, that is how long a cost of the limit has to wait.
local function log_wait(key, cost, limit, length)
  return min(whole(call('LINDEX', key, min(cost - limit, 0) - 1)) or now, now) + length - now
end

local key, limit, length, longest, asked = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local used, oldest, newest, gone, later = log_read(key, length)
if not used then
  return type(oldest) == 'table' and oldest or redis.error_reply('FOREIGN the key holds no record of this policy')
end
local about = max(asked, -asked)
local denied = asked ~= 0 and used + about > limit
if later and asked > 0 then
  log_heal(key, longest)
end
if asked > 0 and not denied then
  local failed = log_charge(key, asked, newest, gone, used + gone == 0, length, longest)
  if failed then
    return failed
  end
  return string.format('%.0f %.0f', used + asked + (limit + 1) * (oldest + length - now), now)
elseif used == 0 then
  return {0, 0, 0, 0}
end
local retry = 0
if denied then
  retry = log_wait(key, about, limit, length)
  if asked > 0 then
    log_keep(key, longest)
  end
end
if used > limit then
  used, oldest = limit, min(whole(call('LINDEX', key, -limit)) or now, now)
end
return {denied and -1 - used or used, oldest + length - now, retry, newest + length - now}
