-- Asks for the lock. A part of the scripts that acquire.
--
-- `listed`: the token may be on the waiting list, or may have been granted the lock. `taken`: the lock is
-- known to be taken.
--
-- Returns {1, lowest number, highest number, other waiters} if the lock is the asker's; the last is -1 if the
-- user may not read the waiting list or leave it. Returns {0, remaining milliseconds, 1 if the holder is a
-- manager that hands the lock over, 1 if the asker is on the waiting list} if the lock is taken; -1
-- milliseconds mean a record without an end. A failure, such as a record that is not a lock, leaves nothing
-- behind and is returned as an error.
local function ask(lock, fence, list, token, expire, block, waits, listed, taken)
  local holder = (taken or listed) and redis.pcall('GET', lock)
  if not holder then
    local mine = redis.pcall('SET', lock, token, 'NX', 'PX', expire)
    if mine and mine.err then
      return mine
    end
    holder = not mine and redis.pcall('GET', lock)
  end
  if type(holder) == 'table' then
    return holder
  end
  if holder then
    local remaining = redis.call('PTTL', lock)
    if holder ~= token then
      local ours = holder:sub(1, 4) == 'cl1:'
      local waiting = 0
      -- A foreign holder hands nothing over, so a place on the list has no use.
      if waits == '1' and ours then
        waiting = wait(list, token, listed)
        -- The holder hands the lock from one of its own callers to the next until it knows this. If
        -- the message is lost, the holder learns of it when it next asks.
        tell('demand', holder, lock)
      end
      return {0, remaining, ours and 1 or 0, waiting}
    end
    -- The asker's own: a grant that is claimed. Never shorten it.
    if remaining < tonumber(expire) then
      redis.call('PEXPIRE', lock, expire)
    end
  end
  local low, high = reserve(fence, block)
  if type(low) == 'table' then
    drop(lock)
    return low
  end
  local others = redis.pcall('ZCARD', list)
  if type(others) == 'table' then
    others = others.err:find('WRONGTYPE', 1, true) and 0 or -1
  elseif others > 0 and listed then
    local left = redis.pcall('ZREM', list, token)
    others = type(left) == 'table' and -1 or others - left
  end
  return {1, low, high, others}
end

