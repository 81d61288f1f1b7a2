-- Records the value of a single flight beside its lock, if the lock is the owner's: a holder whose
-- lease has ended must not overwrite the value of a later one.
--
-- KEYS[1]  the lock
-- KEYS[2]  the value
-- ARGV[1]  the owner token
-- ARGV[2]  how long the value lasts, in milliseconds
-- ARGV[3]  the value
--
-- Returns 1 if it is recorded, 0 if the lock is gone or another owner's.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[2])
return 1
