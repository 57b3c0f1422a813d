-- Requests in flight: takes slots that are held, but that Redis may have lost, and renews
-- those that are there. Then it decides again about the slot that was granted before the
-- loss was noticed, if there is one. So a caller has the slots that it holds counted before
-- another is admitted.
--
-- KEYS[1]  the leases, as inflight_acquire.lua keeps them
-- ARGV[1]  token that asks, or '' if none does
-- ARGV[2]  limit
-- ARGV[3]  lease, in microseconds
-- ARGV[4]  time to live of the set, in milliseconds: longer than a lease
-- ARGV[i]  from the fifth on: tokens of slots that the caller holds, at most 1,000
-- returns  an array. First, if the token that asks is granted, how many are in flight,
--          including this one; if it is denied, or if none asks, -1 - how many are. Then,
--          for each token that is held, 1, or 0 if there was no room for it
-- effects  ZADD of what is held or granted, PEXPIRE, ZREMRANGEBYSCORE of what has lapsed,
--          and ZREM of the token that asks if it is denied; if one of these fails, ZREM of
--          what was added
local key, token = KEYS[1], ARGV[1]
local limit, lease, longest = ARGV[2] + 0, ARGV[3] + 0, ARGV[4]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local ends = now + lease

local function lives(member)
  local score = call('ZSCORE', key, member)
  return score and score + 0 > now
end

local live = call('ZCOUNT', key, string.format('(%.0f', now), '+inf')
local asked = call('ZSCORE', key, token)
if asked and asked + 0 > now then
  live = live - 1
end

-- slots that are held come first
local reply, add, added = {0}, {}, {}
for i = 5, #ARGV do
  local member = ARGV[i]
  local there = lives(member)
  if not there and live < limit then
    there, live = true, live + 1
    added[#added + 1] = member
  end
  if there then
    add[#add + 1], add[#add + 2] = ends, member
  end
  reply[i - 3] = there and 1 or 0
end
local granted = token ~= '' and live < limit
if granted then
  add[#add + 1], add[#add + 2] = ends, token
  if not asked then
    added[#added + 1] = token
  end
end

-- ZADD comes first, because it is the command that a full server refuses. If a later
-- command fails, ZADD is undone, because a script has no rollback.
if #add > 0 then
  call('ZADD', key, unpack(add))
end
local kept = pcall('PEXPIRE', key, longest)
local lapsed = pcall('ZREMRANGEBYSCORE', key, '-inf', now)
local failed = type(kept) == 'table' and kept or type(lapsed) == 'table' and lapsed
if failed then
  if #added > 0 then
    call('ZREM', key, unpack(added))
  end
  return failed
end
if granted then
  reply[1] = live + 1
else
  if asked then
    call('ZREM', key, token)
  end
  reply[1] = -1 - live
end
return reply
