-- Runs before a script, on the script's first line, and records what the script asks of
-- Redis. It returns
--   a list with {line, whether it was done, argument, ...} for each call,
--   for each key the line that left it without a time to live,
--   what Redis replied with numbers in exponent form, and
--   the reply, or the error with its line.
-- Recorded arguments begin with $, and numbers with #. It finds the line with xpcall,
-- because in the Lua of miniredis an error in a pcall cuts closures off from their locals.
local redis, neap_scripttest = (function(KEYS, level)
  local real, log, since, told, failure = redis, {}, {}, {}, nil
  local spared = { FLUSHALL = true, FLUSHDB = true, SWAPDB = true }

  local deep
  local function probe() error('', deep) end
  local function same(err) return err end
  local function line()
    for above = 0, 2 do
      deep = level + above
      local _, at = xpcall(probe, same)
      local found = string.match(at, ':(%d+):')
      if found then
        return found
      end
    end
    return ''
  end

  local function look(at)
    for i = 1, #KEYS do
      if real.pcall('PTTL', KEYS[i]) ~= -1 then
        since[i] = nil
      elseif not since[i] then
        since[i] = at
      end
    end
  end

  local function learn(reply)
    if type(reply) == 'string' and string.find(reply, '%de[+-]%d') then
      told[#told + 1] = reply
    elseif type(reply) == 'table' then
      for _, one in pairs(reply) do
        learn(one)
      end
    end
  end

  local function spare() error('not done in a test: others have keys on this server', 0) end

  local function see(send)
    return function(...)
      local at = line()
      local seen = { at, 'done' }
      for i = 1, select('#', ...) do
        local arg = select(i, ...)
        if type(arg) == 'number' then
          seen[i + 2] = '#' .. string.format('%.17g', arg)
        else
          seen[i + 2] = '$' .. (type(arg) == 'string' and arg or '')
        end
      end
      log[#log + 1] = seen
      local sent, reply = pcall(spared[string.upper(string.sub(seen[3] or '', 2))] and spare or send, ...)
      look(at)
      learn(reply)
      if not sent or type(reply) == 'table' and reply.err then
        failure = { reply, at }
      end
      if failure and failure[1] == reply or not reply then
        seen[2] = 'not done'
      end
      if not sent then
        error(reply, 0)
      end
      return reply
    end
  end

  look('before')
  return setmetatable({ call = see(real.call), pcall = see(real.pcall) }, { __index = real }), function(main)
    local ran, reply = pcall(main)
    local lines = {}
    for i = 1, #KEYS do
      lines[i] = since[i] or ''
    end
    local at = failure and failure[1] == reply and failure[2] or ''
    if ran then
      return { log, lines, told, 'replied', at, reply }
    end
    return { log, lines, told, type(reply) == 'table' and reply.err or tostring(reply), at }
  end
end)(KEYS, LEVEL); return neap_scripttest(function()
