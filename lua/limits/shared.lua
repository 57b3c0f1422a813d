local call, try, min, max = redis.call, redis.pcall, math.min, math.max

-- Returns the whole number that a text is, or nil if it is none that neap writes: one that
-- is not exact, or has not as many digits as it has characters. This is quicker than a
-- pattern.
local function whole(text)
  local n = tonumber(text)
  if n and n % 1 == 0 and n <= 9007199254740992 and n < 10 ^ #text and (n >= 10 ^ (#text - 1) or text == '0') then
    return n
  end
end
