-- Removes the lock, if it is the owner's.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
--
-- Returns 1 if it was removed, 0 if it is gone or somebody else's. A server that is out of memory
-- does not refuse DEL.

if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
