-- Requests in flight: takes a slot. The state is a sorted set of leases, its
-- members the tokens of who holds one, its scores the microseconds of TIME at
-- which they end.
--
-- A token that holds a slot is granted it again, with a new lease.
--
-- KEYS[1]  the leases
-- ARGV[1]  token
-- ARGV[2]  limit
-- ARGV[3]  lease, in microseconds
-- ARGV[4]  time to live of the set, in milliseconds: longer than a lease
-- returns  granted: how many are in flight, this one among them; denied:
--          -1 - how many are
-- effects  granted: ZADD, PEXPIRE, and ZREMRANGEBYSCORE of what has lapsed, or
--          where one of these fails none of them, by ZREM; denied: nothing, or
--          ZADD and PEXPIRE that cut leases and a time to live which are
--          longer than they can be
local key, token = KEYS[1], ARGV[1]
local limit, lease, longest = ARGV[2] + 0, ARGV[3] + 0, ARGV[4]

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local ends = now + lease

local held = call('ZCARD', key)
if held >= limit then
  local live, late = call('ZCOUNT', key, string.format('(%.0f', now), ends), {}
  if live < held then
    late = call('ZRANGEBYSCORE', key, string.format('(%.0f', ends), '+inf')
    live = live + #late
  end
  local own = live >= limit and call('ZSCORE', key, token)
  if live >= limit and not (own and own + 0 > now) then
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

-- ZADD comes first, since it is what a full server refuses; what fails behind
-- it is undone, since a script has no rollback
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
return held + added - lapsed
