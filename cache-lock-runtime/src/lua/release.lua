-- Ends a lease or a wait: grants the lock to the next that waits, if it is the owner's, and
-- otherwise takes the owner off the waiting list.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiting list
-- ARGV[1]  the owner token
-- ARGV[2]  how long the claim of a grant lasts, in milliseconds, or 0 to leave the lock free for a
--          moment
-- ARGV[3]  anything, if the user may ask how many subscribe to a channel; else it is left out
--
-- Returns 1 if the lock was the owner's, 0 if it is gone or somebody else's; 2 for 1 if the user may
-- not hand it on. None of its commands is one that a server out of memory refuses, unless it has
-- written before.

local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end
if holder == ARGV[1] then
  local granted = grant(KEYS[1], KEYS[2], ARGV[2], ARGV[3])
  return type(granted) == 'table' and granted or math.max(1, granted)
end
redis.pcall('ZREM', KEYS[2], ARGV[1])
-- The owner may have been told that the lock is left free, and is its turn soon.
if not holder then
  grant(KEYS[1], KEYS[2], ARGV[2], ARGV[3])
end
return 0
