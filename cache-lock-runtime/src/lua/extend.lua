-- Makes a lease last for some time from now, if it would end sooner.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- ARGV[2]  how long the lease is to last, in milliseconds
--
-- Returns 1 if the lock is the owner's. Returns 0 if it is gone or somebody else's, and does
-- nothing then: what has expired is never made again.

local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end
if holder ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
