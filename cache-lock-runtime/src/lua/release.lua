-- Ends a lease or a wait: a lock of the owner is granted to the first on the waiting list; otherwise the
-- owner's token leaves the list.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiting list
-- ARGV[1]  the owner token
-- ARGV[2]  how long the claim of a grant lasts, in milliseconds, or 0 to yield
-- ARGV[3]  anything, if the user may count the subscribers of a channel; otherwise left out
--
-- Returns 1 if the lock was the owner's, 2 if it was and the user may not hand it over, 0 if it is gone or
-- another owner's. The first command is one that a server out of memory does not refuse.

local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end
if holder == ARGV[1] then
  local granted = grant(KEYS[1], KEYS[2], ARGV[2], ARGV[3])
  return type(granted) == 'table' and granted or math.max(1, granted)
end
redis.pcall('ZREM', KEYS[2], ARGV[1])
-- The owner may have been told of a yield, with its own turn after that.
if not holder then
  grant(KEYS[1], KEYS[2], ARGV[2], ARGV[3])
end
return 0
