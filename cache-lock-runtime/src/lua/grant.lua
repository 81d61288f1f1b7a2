-- Hands the lock on. A part of the scripts that end a lease.
--
-- Grants the lock to the first on the list whose manager listens, for as long as a claim may take; if there
-- is none, the lock is free. A manager that has died does not listen, so its token leaves the list. A user
-- without the right to publish cannot tell which managers have died: the list stays as it is, and its
-- managers ask again by their own timers.
--
-- A claim of 0 yields: the lock is left free for a moment, for other libraries and for managers without
-- pushes, which are on no list. The first on the list is told, keeps its place, and asks after that.
--
-- `counts` is that of `tell`.
--
-- Returns 1 if the lock was granted, 0 if not, and 2 if the user may not use the list or publish. Returns an
-- error if the user may not delete: the lock is free all the same.
--
-- The first command that writes is one that a server out of memory does not refuse.
local function grant(lock, list, claim, counts)
  local yields = claim == '0'
  local first = redis.pcall('ZRANGE', list, 0, 0)
  while not first.err and first[1] do
    local token = first[1]
    local heard = tell(yields and 'yielded' or 'grant', token, lock, counts)
    if type(heard) == 'table' then
      first = heard
      break
    end
    if yields and heard > 0 then
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

