-- Decides requests of one caller or of several. A request asks one or more policies, all
-- or nothing: if every enforced policy grants, each policy that grants is charged.
--
-- A run is equal requests that follow each other, of one subject. Runs are decided in
-- their order, exactly as if each request was made by itself.
--
-- KEYS[i]  for each run in turn: the states of the policies, the records of the bans, and
--          the estimates of the windows with a lease
-- ARGV[i]  in turn: how many policies there are; how many of them are enforced (these come
--          first; the others are shadows); how many bans there are; how many leases
--          (with leases, there is one run of one request); and how many numbers are
--          returned for a run. For each policy seven: its kind, and its numbers as
--          limit_<kind>.lua takes them, or 0 for those that it has not. For each ban five:
--          the index of its policy; how many denials begin it, or 0 for a hold, which none
--          begins; and in milliseconds how long they are counted, how long the first ban
--          lasts, and how long a ban lasts at most. The policies of a subject are one more
--          ban (limits/ban.lua): 1, -1, the text that the caller knows, 0 and 0. For each
--          lease two: the index of its policy, and the lease in milliseconds. For each run:
--          the cost under each policy, in its units (-n asks about a cost of n and takes
--          nothing), and how many requests there are.
--          With leases: the name of the estimate
-- returns  for each run in turn, -1 and 0s if a key holds what neap never writes, or -2
--          and 0s if the subject has policies that the caller does not know: then
--          nothing was charged. Otherwise for each policy how many requests it does not
--          deny, from the first on, and its numbers when all are decided:
--          bucket and fast {debt}, window {used, left}, sliding {last, current, rest},
--          calendar {used, left, length of the window}, kept {charged, now - since, drain,
--          micros}, log {used, next, retry, reset, mark}.
--          Then for each ban how long it still lasted, how long the ban is that has begun,
--          and with which request; in milliseconds, 0 if there is none.
--          Instead, {TIME in milliseconds} if TIME is in no window of a calendar: then
--          nothing was done
-- effects  those of each kind, once for a run: SET with PX, INCRBY, PEXPIRE, RPUSH, LPOP and
--          LTRIM; before these for an estimate ZADD and PEXPIRE, or ZREM, and DEL if others
--          are left of a window that was deleted; for a window without room INCRBY and ZREM
--          of estimates, and INCRBY again if Redis refuses the ZREM; at last SET with PX for
--          a ban, if denials are counted

-- Reports whether a reply is an error that does not come from what the key holds.
local function unreadable(reply)
  return type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE', 1, true)
end

local keys = KEYS
local count, enforced, bans, leases = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local name = ARGV[#ARGV] -- the name is that of the estimate, with leases

local at, logs = 5, false -- at: how many arguments have been read
local policies, barring, leased = {nil, nil, nil, nil}, {}, {} -- with room: to grow is slow
for i = 1, count do
  local kind = ARGV[at + 1]
  -- The kind and its six numbers; at 8 how many requests find room, and later how many are
  -- charged; from 9 on the state; at 16 how many requests the policy does not deny; at 17
  -- the cost.
  local p = {
    kind, ARGV[at + 2] + 0, ARGV[at + 3] + 0, ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6], ARGV[at + 7],
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  }
  if kind == 'calendar' then
    local time = (now - now % 1000) / 1000
    local which, from, till = calendar_at(time, p[3], p[4], p[5], p[6] + 0)
    if not which then
      return {time}
    end
    p[3], p[4] = till - time, till - from
  end
  logs = logs or kind == 'log'
  policies[i], at = p, at + 7
end
for i = 1, bans do
  local of, after, within = ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3]
  local first, most = ARGV[at + 4] + 0, ARGV[at + 5] + 0
  within = after < 0 and within or within + 0
  barring[i], at = {of = of, after = after, within = within, first = first, most = most}, at + 5
end
for i = 1, leases do
  local of, length = ARGV[at + 1] + 0, ARGV[at + 2] + 0
  leased[i], at = {of = of, length = length}, at + 2
end
local time = bans + leases > 0 and (now - now % 1000) / 1000

local told, size = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}, 0
for base = 0, #keys - 1, count + bans + leases do
  local n = ARGV[at + count + 1] + 0
  local asks = n == 0 or ARGV[at + 1] + 0 <= 0 -- nothing is taken
  local granted, known, banned, unknown = n, true, false, -1

  for i = 1, count do
    local p, key, asked = policies[i], keys[base + i], ARGV[at + i] + 0
    local kind, about = p[1], asked < 0 and -asked or asked
    p[17] = asked
    if kind == 'bucket' then
      p[9], p[10] = bucket_read(key, p[3], p[4])
    elseif kind == 'window' or kind == 'calendar' then
      p[9], p[10], p[11] = window_read(key, p[3])
    elseif kind == 'fast' then
      p[9], p[10] = fast_read(key, p[3], p[4], p[5])
    elseif kind == 'sliding' then
      p[9], p[10], p[11], p[12], p[13] = sliding_read(key, p[3], p[4])
    elseif kind == 'log' then
      p[9], p[10], p[11], p[12], p[13] = log_read(key, p[3])
    else
      p[9], p[10], p[11], p[12], p[13], p[14], p[15] = kept_read(key, p[3], p[4], p[5])
    end
    if not p[9] then
      if unreadable(p[10]) then
        return p[10]
      end
      known = false
      break
    end
    for lease = 1, leases do
      if leased[lease].of == i and p[9] + about > p[2] then
        p[9] = p[9] - estimates_lapsed(key, keys[base + count + bans + lease], time, p[9], asks)
      end
    end
    local fit = n
    if not asks or kind == 'log' and about > 0 then
      local room = kind == 'sliding' and sliding_room(p[9], p[10], p[11], p[2], p[3]) or p[2] - p[9]
      if room < about then
        fit = 0
      elseif not asks and room < n * about then
        fit = (room - room % about) / about
      end
    end
    p[8] = fit
    if fit < granted and i <= enforced then
      granted = fit
    end
  end
  for i = 1, known and bans or 0 do
    local b, key = barring[i], keys[base + count + i]
    if b.after < 0 then
      b.left, b.last, b.count = 0, policies_read(key), 0
      if b.last ~= b.within and not unreadable(b.last) then
        known, unknown = false, -2
      end
    else
      b.left, b.last, b.length, b.from, b.count, b.broken = ban_read(key, time)
    end
    if unreadable(b.last) then
      return b.last
    elseif not b.left then
      known = false
    elseif b.left > 0 and b.of <= enforced then
      granted, banned = 0, true
    end
  end

  if not known then
    told[size + 1] = unknown
    for place = size + 2, size + ARGV[5] do
      told[place] = 0
    end
    size = size + ARGV[5]
  else
    for i = 1, count do
      local p = policies[i]
      local charged = p[8] < granted and p[8] or granted
      for ban = 1, bans do
        if barring[ban].of == i and barring[ban].left > 0 then
          charged = 0
        end
      end
      p[16] = p[8] > charged and n or p[8]
      p[8] = asks and 0 or charged
    end

    -- An estimate is stored before it is charged. If Redis refuses to store it, nothing is
    -- charged, and none is kept.
    for i = 1, leases do
      local p, place = policies[leased[i].of], base + count + bans + i
      if p[8] > 0 then
        local begins = p[10] == 0
        local rest = begins and p[3] or p[10]
        local failed = estimates_add(keys[place], time, leased[i].length, name, rest, begins)
        if failed then
          estimates_drop(keys, place - i + 1, place, name)
          return failed
        end
      end
    end

    -- Logs are charged before the others: if a log cannot get its time to live, the others
    -- are not charged.
    for i = 1, logs and not asks and count or 0 do
      local p, key = policies[i], keys[base + i]
      local asked = p[17]
      if p[1] == 'log' then
        if p[13] then
          log_heal(key, p[4])
        end
        if p[8] > 0 then
          local failed = log_charge(key, p[8] * asked, p[11], p[12], p[9] + p[12] == 0, p[3], p[4])
          if failed then
            if leases > 0 then
              estimates_drop(keys, #keys - leases + 1, #keys, name)
            end
            return failed
          end
          p[9], p[11] = p[9] + p[8] * asked, now
        elseif p[9] + p[12] > 0 then
          log_keep(key, p[4])
        end
      end
    end

    for i = 1, count do
      local p, key = policies[i], keys[base + i]
      local kind, asked = p[1], p[17]
      local units = p[8] * asked
      local text = p[8] == 1 and ARGV[at + i] or units -- Redis takes it in less time than a number
      told[size + 1] = p[16]
      if kind == 'bucket' then
        local debt = p[9] + units
        if units > 0 or p[10] and not asks then
          bucket_store(key, debt, p[3])
        end
        told[size + 2] = debt
        size = size + 2
      elseif kind == 'window' or kind == 'calendar' then
        local left = p[10]
        if units > 0 then
          left = window_charge(key, text, left, p[11], p[3])
        elseif p[11] and not asks then
          call('PEXPIRE', key, p[3])
        end
        told[size + 2], told[size + 3] = p[9] + units, left
        size = size + 3
        if kind == 'calendar' then
          told[size + 1], size = p[4], size + 1
        end
      elseif kind == 'fast' then
        local debt = p[9] + units
        if units > 0 then
          fast_store(key, debt, p[3], p[5], p[6])
        elseif not asks then
          fast_heal(key, debt, p[10], p[3], p[5], p[6])
        end
        told[size + 2] = debt
        size = size + 2
      elseif kind == 'sliding' then
        local rest = p[11]
        if units > 0 then
          rest = sliding_charge(key, text, p[9], rest, p[12], p[13], p[3], p[4])
        elseif p[13] and not asks then
          call('PEXPIRE', key, 2 * p[3])
        end
        told[size + 2], told[size + 3], told[size + 4] = p[9], p[10] + units, rest
        size = size + 4
      elseif kind == 'log' then
        local used, oldest, newest, retry = p[9], p[10], p[11], 0
        if p[16] < n and used > 0 then
          retry = log_wait(key, max(asked, -asked), p[2], p[3])
        end
        if used > p[2] then
          used, oldest = p[2], min(whole(call('LINDEX', key, -p[2])) or now, now)
        end
        told[size + 2], told[size + 4], told[size + 6] = used, retry, now
        told[size + 3], told[size + 5] = used > 0 and oldest + p[3] - now or 0, used > 0 and newest + p[3] - now or 0
        size = size + 6
      else
        local charged, since, by, per = p[10], p[11], p[12], p[13]
        if units > 0 then
          charged, since = kept_add(units, p[9], charged, since, by, per, p[14], p[3], p[4], p[5])
          kept_store(key, charged, since, p[3], p[4], p[5])
        elseif not asks then
          kept_heal(key, charged, since, by, per, p[14], p[15])
        end
        if units > 0 or charged == 0 then
          by, per = p[3], p[4]
        end
        told[size + 2], told[size + 3], told[size + 4], told[size + 5] = charged, now - since, by, per
        size = size + 5
      end
    end

    -- Denials are counted when all else is done. A request that finds a ban of an enforced
    -- policy is not counted, so counting ends with the denial that begins one.
    local last = (asks or banned) and 0 or n
    for i = 1, last > 0 and bans or 0 do
      local b = barring[i]
      local anew = b.count == 0 or time - b.from >= b.within
      b.needs = b.after > 0 and max(b.after - (anew and 0 or b.count), 1) or 0
      if b.needs > 0 and b.left == 0 and b.of <= enforced then
        last = min(last, policies[b.of][16] + b.needs)
      end
    end
    for i = 1, bans do
      local b = barring[i]
      local fit, denials, begun = policies[b.of][16], 0, 0
      if b.left == 0 and last > fit then
        denials = min(last - fit, b.needs)
      end
      if denials > 0 or b.broken and not asks then
        begun = ban_count(keys[base + count + i], time, denials, b)
      end
      told[size + 1], told[size + 2], told[size + 3] = b.left, begun, fit + denials
      size = size + 3
    end
  end
  at = at + count + 1
end
return told
