-- Bans a subject on request, lifts its bans, or reports them. limits/ban.lua describes the
-- record of a ban. A hold is stored alike, and only ever prolonged.
--
-- KEYS[i]  the record of the i-th ban
-- ARGV[1]  how long to ban for, in milliseconds; 0 lifts, -1 only asks
-- ARGV[i + 1]  how long the i-th ban lasts at most, in milliseconds; 0 for a hold
-- returns  for each ban in turn, how long it still lasted, in milliseconds; 0 if there was
--          none
-- effects  to ban SET with PX, to lift DEL
local duration = ARGV[1] + 0

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + (clock[2] - clock[2] % 1000) / 1000
local lefts, stored = {}, {}
for i = 1, #KEYS do
  stored[i] = call('GET', KEYS[i])
  local last, length = string.match(stored[i] or '', '^(%d+):(%d+):%d+:%d+$')
  local known = last and math.max(last, length) <= 9007199254740992
  lefts[i] = known and math.max(math.min(last - now, length), 0) or 0
end
for i = 1, #KEYS do
  local key, most = KEYS[i], ARGV[i + 1]
  if duration > 0 and (most ~= '0' or duration > lefts[i]) then
    call('SET', key, string.format('%.0f:%.0f:0:0', now + duration, duration), 'PX', duration + most)
  elseif duration == 0 and stored[i] then
    call('DEL', key)
  end
end
return lefts
