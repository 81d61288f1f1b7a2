-- Removes the lock, if it is the owner's.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
--
-- Returns 1 if it was removed, 0 if it is gone or somebody else's. A server that is out of memory
-- does not refuse DEL.

local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end
if holder ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
