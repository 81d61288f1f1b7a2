-- Hands the lock on. A part of the scripts that end a lease.
--
-- Grants the lock to the first on the list that can be told, for as long as it may take to claim
-- it; if there is none, the lock is free. Nobody listens for a manager that has died, so it is taken
-- off. Where the user may not publish, nobody is known to have died: the list stays as it is, and
-- who is on it asks again by its own clock. True if the lock was granted.
--
-- The first command that writes is one that a server out of memory does not refuse.
local function grant(lock, list, claim)
  local first = redis.pcall('ZRANGE', list, 0, 0)
  while not first.err and first[1] do
    local token = first[1]
    local heard = tell('grant', token, lock)
    if type(heard) == 'table' then
      break
    end
    redis.call('ZREM', list, token)
    if heard > 0 and not redis.pcall('SET', lock, token, 'PX', claim).err then
      return true
    end
    first = redis.call('ZRANGE', list, 0, 0)
  end
  redis.call('DEL', lock)
  return false
end

