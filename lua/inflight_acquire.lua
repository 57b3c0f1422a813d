-- Requests in flight: takes a slot. The state is a sorted set of leases. A member is the
-- token of a slot, and its score is when its lease ends, in microseconds of TIME.
--
-- A token that holds a slot already is granted it again, with a new lease.
--
-- A caller that holds slots already names two of them, its witnesses. If a grant finds
-- neither witness, Redis may have lost the caller's slots, and the caller goes on with
-- inflight_restore.lua.
--
-- KEYS[1]  the leases
-- ARGV[1]  token
-- ARGV[2]  limit
-- ARGV[3]  lease, in microseconds
-- ARGV[4]  time to live of the set, in milliseconds: longer than a lease
-- ARGV[5]  token of a witness, or '' for none
-- ARGV[6]  token of another witness, or of the same
-- returns  granted: how many are in flight, including this one, plus a million if
--          neither witness has a slot; denied: -1 - how many are in flight
-- effects  granted: ZADD, PEXPIRE, and ZREMRANGEBYSCORE of what has lapsed; if one of
--          these fails, ZREM undoes the ZADD; denied: nothing, or ZADD and PEXPIRE that
--          cut leases and a time to live that are longer than they can be
local key, token = KEYS[1], ARGV[1]
local limit, lease, longest = ARGV[2] + 0, ARGV[3] + 0, ARGV[4]
local witness, other = ARGV[5], ARGV[6]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local ends = now + lease

local function lives(member)
  local score = call('ZSCORE', key, member)
  return score and score + 0 > now
end

local held = call('ZCARD', key)
if held >= limit then
  local live, late = call('ZCOUNT', key, string.format('(%.0f', now), ends), {}
  if live < held then
    late = call('ZRANGEBYSCORE', key, string.format('(%.0f', ends), '+inf')
    live = live + #late
  end
  if live >= limit and not lives(token) then
    for _, member in ipairs(late) do
      call('ZADD', key, ends, member)
    end
    local left = call('PTTL', key)
    if #late > 0 or left < 0 or left > longest + 0 then
      call('PEXPIRE', key, longest)
    end
    return -1 - live
  end
end

local lost = witness ~= '' and not lives(witness) and not lives(other)

-- ZADD comes first, because it is the command that a full server refuses. If a later
-- command fails, ZADD is undone, because a script has no rollback.
local added = call('ZADD', key, ends, token)
local kept = pcall('PEXPIRE', key, longest)
local lapsed = pcall('ZREMRANGEBYSCORE', key, '-inf', now)
local failed = type(kept) == 'table' and kept or type(lapsed) == 'table' and lapsed
if failed then
  if added == 1 then
    call('ZREM', key, token)
  end
  return failed
end
return held + added - lapsed + (lost and 1000000 or 0)
