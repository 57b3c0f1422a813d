-- Sells a unit to a buyer, once.
-- KEYS[1] the item of stock_open.lua, ARGV[1] the buyer, ARGV[2] the buyer's order
-- returns 'sold', 'sold out', 'yours already', or 'no such item'
local key, buyer, order = KEYS[1], 'buyer:' .. ARGV[1], ARGV[2]
local state = redis.call('HMGET', key, 'left', buyer)
local left, has = tonumber(state[1]), state[2]
if not left then
  return 'no such item'
elseif has == order then
  return 'sold' -- the same order again: its reply was lost
elseif has then
  return 'yours already'
elseif left == 0 then
  return 'sold out'
end
redis.call('HSET', key, buyer, order, 'left', left - 1)
return 'sold'
