-- Takes the lock, if it is free or already the asker's, and numbers the grant; otherwise the asker's token
-- joins the waiting list.
--
-- KEYS[1]  the lock: a plain string, as SET key token NX PX leaves it
-- KEYS[2]  the fence: the last number given out for this lock
-- KEYS[3]  the waiting list
-- ARGV[1]  the owner token of the asker
-- ARGV[2]  how long the lease lasts, in milliseconds
-- ARGV[3]  how many numbers to reserve
-- ARGV[4]  1 to join the waiting list if the lock is taken, 0 not to
-- ARGV[5]  1 if the token may be on the waiting list; otherwise left out
--
-- Returns what `ask` does.

return ask(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5],
  taken)
