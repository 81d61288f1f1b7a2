-- Leaves the lock free. A part of the scripts that acquire or end a lease.
--
-- A user without the right to delete has the right to set, or there was no lock. Then the record ends after
-- a millisecond.
--
-- Returns the error if the user may not delete.
local function drop(lock)
  local dropped = redis.pcall('DEL', lock)
  if type(dropped) == 'table' then
    redis.pcall('SET', lock, '', 'XX', 'PX', '1')
    return dropped
  end
end

