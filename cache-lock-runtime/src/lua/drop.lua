-- Leaves the lock free. A part of the scripts that acquire or end a lease.
--
-- A user who may not delete may set, or there was no lock: the record is over after a millisecond then.
--
-- Returns an error if the user may not delete, for the caller to be told.
local function drop(lock)
  local dropped = redis.pcall('DEL', lock)
  if type(dropped) == 'table' then
    redis.pcall('SET', lock, '', 'XX', 'PX', '1')
    return dropped
  end
end

