-- Stock: opens an item. The record is a hash with these fields. units: how many were ever
-- put in. left, held and sold, which add up to units. until: the millisecond since 1970
-- at which the item ends. open: the token of the call that opened it. note: a long text,
-- so that Redis keeps a hash and not a list that each call must walk through (Redis keeps
-- a list up to hash-max-listpack-value, 64 bytes). r:<id> for each restock. And:
--
--   b:<buyer>  <id> <quantity> <place> <tokens>
--   q:<place>  <end of the lease> <lease> <quantity> <buyer>
--
-- place is 0 for units that are sold. The tokens are those of the calls that were granted
-- the units: at most eight, with commas between them, or * if another call has confirmed
-- beside eight. Units that are held are in a queue of places, from first to the one
-- before last, in the order in which the leases end. It has holes where a lease was ended
-- earlier. An empty field means the same as none.
--
-- KEYS[1]  the record
-- ARGV[1]  units
-- ARGV[2]  until, in milliseconds since 1970
-- ARGV[3]  longest, in milliseconds: how far away until may be
-- ARGV[4]  token
-- returns  1: this call has opened it; 0: it was open before, and stays as it is; -4:
--          there is something else; -7: until has passed, or is too far away
-- effects  1: DEL of what should have expired, HSET and PEXPIRE, or DEL if PEXPIRE fails
local key, units, ends, longest, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3] + 0, ARGV[4]

local note = 'A stock of neap. Let nothing else change it: what does not add up is not sold.'

local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lives = ends - now
if lives <= 0 or lives > longest then
  return -7
end
local was = call('HMGET', key, 'until', 'open')
local over = tonumber(string.match(was[1] or '', '^%d+$') or '')
if over and over > now then
  return was[2] == token and 1 or 0
elseif over and over > 100000000000 then
  call('DEL', key)
elseif call('HLEN', key) > 0 then
  return -4
end
call('HSET', key, 'until', ends, 'units', units, 'left', units, 'held', '0', 'sold', '0',
  'first', '1', 'last', '1', 'open', token, 'note', note)
local kept = pcall('PEXPIRE', key, lives)
if type(kept) == 'table' then
  call('DEL', key)
  return kept
end
return 1
