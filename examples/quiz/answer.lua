-- A quiz: counts one answer in the day's score, the total, the prize and the
-- board of the best, or in none of them. A question that the player has answered
-- is not counted again, so that a call whose reply was lost may be made again.
--
-- The board is exact: whoever is dropped from it has as many players before him
-- as it keeps, and totals only grow.
--
-- KEYS[1]  the player: total, prize, and the points of each question
-- KEYS[2]  his score of the day
-- KEYS[3]  the board
-- ARGV[1]  player
-- ARGV[2]  question
-- ARGV[3]  points of the answer, 0 where it is wrong
-- ARGV[4]  the most points of a day
-- ARGV[5]  total from which on there is a small prize
-- ARGV[6]  total from which on there is a large one
-- ARGV[7]  how many players the board keeps
-- ARGV[8]  ttl of the day's score, in milliseconds
-- ARGV[9]  ttl of player and board, in milliseconds
-- returns  {1, or 0 where it was counted before; the points that it brought;
--          score of the day; total; prize: 0 none, 1 small, 2 large; place on
--          the board, or 0}
-- effects  counted: HSET, PEXPIRE; with points SET with PX, ZADD and
--          ZREMRANGEBYRANK too
local player, day, board = KEYS[1], KEYS[2], KEYS[3]
local name, question, points, most = ARGV[1], 'question:' .. ARGV[2], ARGV[3] + 0, ARGV[4] + 0
local small, large, size = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0
local daily, whole = ARGV[8] + 0, ARGV[9] + 0

local call = redis.call
local was = call('HMGET', player, 'total', 'prize', question)
local today = (call('GET', day) or 0) + 0
local place = call('ZREVRANK', board, name)
local total, prize = (was[1] or 0) + 0, (was[2] or 0) + 0
if was[3] then
  return { 0, was[3] + 0, today, total, prize, place and place + 1 or 0 }
end

local brought = math.max(math.min(points, most - today), 0)
today, total = today + brought, total + brought
if total >= large then
  prize = 2
elseif total >= small then
  prize = 1
end
call('HSET', player, 'total', total, 'prize', prize, question, brought)
call('PEXPIRE', player, whole)
if brought > 0 then
  call('SET', day, today, 'PX', daily)
  call('ZADD', board, total, name)
  call('PEXPIRE', board, whole)
  call('ZREMRANGEBYRANK', board, 0, -1 - size)
  place = call('ZREVRANK', board, name)
end
return { 1, brought, today, total, prize, place and place + 1 or 0 }
