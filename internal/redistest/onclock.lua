-- Stands before a script, and has it run by a clock that the test sets: see OnClock. The last
-- argument has the time and how far it moves when it is read, in microseconds.
local real, now, step = redis, string.match(ARGV[#ARGV], '^(%d+) (%d+)$')
now, step = now + 0, step + 0
local ARGV = {unpack(ARGV, 1, #ARGV - 1)}

local function ms()
  return (now - now % 1000) / 1000
end

local function beside(key)
  return key .. '!ends'
end

-- When the key ends, or nil if it does not. A key that has ended is gone.
local function ends(key)
  local at = real.call('GET', beside(key))
  if at and (at + 0 < ms() or real.call('EXISTS', key) == 0) then
    real.call('DEL', key, beside(key))
    at = nil
  end
  return at and at + 0
end

local function live(key, time)
  real.call('SET', beside(key), string.format('%.0f', ms() + time), 'PX', '3600000')
end

local function run(call, name, key, ...)
  name = string.upper(name)
  if name == 'TIME' or name == 'PTTL' then
    now = now + step
  end
  if name == 'TIME' then
    local micros = now % 1000000
    return {string.format('%.0f', (now - micros) / 1000000), string.format('%.0f', micros)}
  end
  local at, more = ends(key), {...}
  if name == 'PTTL' then
    return at and at - ms() or call(name, key)
  elseif name == 'PEXPIRE' and more[1] + 0 > 0 then
    local reply = call(name, key, '3600000')
    if reply == 1 then
      live(key, more[1])
    end
    return reply
  elseif name == 'SET' then
    local time, keep
    for i = 2, #more do
      local word = string.upper(more[i])
      if word == 'PX' then
        time, more[i + 1] = more[i + 1] + 0, '3600000'
      elseif word == 'KEEPTTL' then
        keep = true
      end
    end
    local reply = call(name, key, unpack(more))
    if not reply then
      return reply
    elseif time then
      live(key, time)
    elseif not keep then
      real.call('DEL', beside(key))
    end
    return reply
  elseif name == 'DEL' then
    for _, other in ipairs(more) do
      ends(other)
    end
  end
  return call(name, key, ...)
end

local redis = setmetatable({
  call = function(...) return run(real.call, ...) end,
  pcall = function(...) return run(real.pcall, ...) end,
}, {__index = real})
