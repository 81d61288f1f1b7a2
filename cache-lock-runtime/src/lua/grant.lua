-- Hands the lock on. A part of the scripts that end a lease.
--
-- Grants the lock to the first on the list that can be told, for as long as it may take to claim
-- it; if there is none, the lock is free. Nobody listens for a manager that has died, so it is taken
-- off. Where the user may not publish, nobody is known to have died: the list stays as it is, and
-- who is on it asks again by its own clock.
--
-- A claim of 0 leaves the lock free for a moment, for those that are on no list: other libraries, and
-- managers that cannot be told. The first on the list is told, keeps its place, and asks after that.
--
-- `counts` is that of `tell`.
--
-- Returns 1 if the lock was granted, 0 if not, and 2 if the user may not look who waits, take
-- them off, or tell them. An error if the user may not delete: the lock is free all the same.
--
-- The first command that writes is one that a server out of memory does not refuse.
local function grant(lock, list, claim, counts)
  local leaves = claim == '0'
  local first = redis.pcall('ZRANGE', list, 0, 0)
  while not first.err and first[1] do
    local token = first[1]
    local heard = tell(leaves and 'soon' or 'grant', token, lock, counts)
    if type(heard) == 'table' then
      first = heard
      break
    end
    if leaves and heard > 0 then
      break
    end
    local left = redis.pcall('ZREM', list, token)
    if type(left) == 'table' then
      first = left
      break
    end
    if heard > 0 and not redis.pcall('SET', lock, token, 'PX', claim).err then
      return 1
    end
    first = redis.pcall('ZRANGE', list, 0, 0)
  end
  local denied = drop(lock)
  if denied then
    return denied
  end
  return first.err and not first.err:find('WRONGTYPE', 1, true) and 2 or 0
end

