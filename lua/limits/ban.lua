-- What Redis keeps about a subject beside its counts: bans, a hold, and the policies that it
-- has in place of the others.
--
-- The record of a ban is <end>:<length>:<from>:<count>: when the last ban ends, by TIME in
-- milliseconds; how long it was; when the counted denials began; and how many there are. A
-- ban that begins within most after the last one's end is twice as long as that one; most
-- is how long a ban lasts at most. A hold is a ban that no denial begins. Policies are text
-- that scripts only compare.

-- Returns how long a ban still lasts, its record, and whether that was more than it can be.
-- Text that is no record counts as none.
local function ban_read(key, time)
  local stored = try('GET', key)
  if not stored then
    return 0, 0, 0, 0, 0, false
  end
  local text = type(stored) == 'string' and stored or ''
  local last, length, from, count = string.match(text, '^(%d+):(%d+):(%d+):(%d+)$')
  if type(stored) == 'table' then
    return nil, stored
  end
  last, length, from, count = (last or 0) + 0, (length or 0) + 0, (from or 0) + 0, (count or 0) + 0
  if max(last, length, from, count) > 9007199254740992 then
    last, length, from, count = 0, 0, 0, 0
  end
  local broken = last - time > length or from > time or call('PTTL', key) == -1
  last = min(last, time + length)
  return max(last - time, 0), last, length, min(from, time), count, broken
end

-- Returns the text of the policies that a subject has in place of the others, '' if it has
-- none, or the error. What is no text, lives for ever or ends now counts as none.
local function policies_read(key)
  local stored = try('GET', key)
  if not stored or type(stored) == 'table' and string.find(stored.err, 'WRONGTYPE', 1, true) then
    return ''
  end
  return type(stored) == 'string' and call('PTTL', key) < 1 and '' or stored
end

-- Counts denials at one time, and returns how long the ban is that begins with the last of
-- them; 0 if none does. If Redis refuses to count, none does.
local function ban_count(key, time, denials, b)
  local last, length, from, count, begun = b.last, b.length, b.from, b.count, 0
  if denials > 0 and (count == 0 or time - from >= b.within) then
    from, count = time, 0
  end
  if denials > 0 and time - last >= b.most then
    last, length = 0, 0
  end
  count = count + denials
  if denials > 0 and count >= b.after then
    begun = length > 0 and min(2 * length, b.most) or b.first
    last, length, from, count = time + begun, begun, 0, 0
  end
  local text = string.format('%.0f:%.0f:%.0f:%.0f', last, length, from, count)
  local set = try('SET', key, text, 'PX', max(last + b.most - time, from + b.within - time, 1))
  return set.err and 0 or begun
end
