-- Stands before a script, on its first line, and sees what it asks of Redis.
-- What it returns is a list of {line, argument, …} a call, the lines by key
-- that were left without a time to live, and the reply or the error. Arguments
-- begin with $, numbers with #. It finds the line by xpcall, since an error in a
-- pcall cuts closures off from their locals in the Lua of miniredis.
local redis, neap_scripttest = (function(KEYS, level)
  local real, log, since, failure = redis, {}, {}, nil

  local function probe() error('', level) end
  local function same(err) return err end
  local function line()
    local _, at = xpcall(probe, same)
    local found = string.match(at, ':(%d+):') or ''
    return found
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

  local function see(send)
    return function(...)
      local at = line()
      local seen = { at }
      for i = 1, select('#', ...) do
        local arg = select(i, ...)
        if type(arg) == 'number' then
          seen[i + 1] = '#' .. string.format('%.17g', arg)
        else
          seen[i + 1] = '$' .. (type(arg) == 'string' and arg or '')
        end
      end
      log[#log + 1] = seen
      local sent, reply = pcall(send, ...)
      look(at)
      if not sent then
        failure = { reply, at }
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
    if ran then
      return { log, lines, 'replied', '', reply }
    end
    local at = failure and failure[1] == reply and failure[2] or ''
    return { log, lines, type(reply) == 'table' and reply.err or tostring(reply), at }
  end
end)(KEYS, LEVEL); return neap_scripttest(function()
