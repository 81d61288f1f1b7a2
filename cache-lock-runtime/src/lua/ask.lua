-- Asks for the lock. A part of the scripts that acquire.
--
-- Returns {1, lowest number, highest number, others that wait} if the lock is the asker's, and
-- {0, remaining milliseconds, 1 if the holder is a manager like the asker} if it is somebody else's;
-- -1 milliseconds say that the record has no expiry. A failure of any kind, a record that is not
-- ours among them, leaves nothing behind and is returned as an error.
local function ask(lock, fence, list, token, expire, keep, block, life)
  local mine = redis.pcall('SET', lock, token, 'NX', 'PX', expire)
  if type(mine) == 'table' and mine.err then
    return mine
  end
  if not mine then
    local holder = redis.pcall('GET', lock)
    if type(holder) == 'table' then
      return holder
    end
    local remaining = redis.call('PTTL', lock)
    if holder ~= token then
      local ours = holder:sub(1, 4) == 'cl1:'
      if life ~= '0' then
        local refused = wait(list, token, life)
        if refused then
          return refused
        end
        -- The holder hands the lock from one of its own callers to the next until it knows this. Who
        -- may not publish, or is not heard, is found by the holder when it next asks.
        if ours then
          tell('demand', holder, lock)
        end
      end
      return {0, remaining, ours and 1 or 0}
    end
    -- The asker's own: a grant that is claimed. Never shorten it.
    if remaining < tonumber(expire) then
      redis.call('PEXPIRE', lock, expire)
    end
  end
  local got = reserve(fence, keep, tonumber(block))
  if not got.err then
    local others = redis.pcall('ZCARD', list)
    if type(others) == 'table' then
      got = others
    elseif others > 0 then
      got[4] = others - redis.call('ZREM', list, token)
    else
      got[4] = 0
    end
  end
  if got.err then
    redis.call('DEL', lock)
  end
  return got
end

