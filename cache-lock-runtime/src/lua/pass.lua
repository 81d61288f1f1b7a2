-- Ends a lease, and asks for the lock under another token in the same step: the first on the waiting list
-- gets it, and if the list is empty, the asker keeps it. The old token is over in every outcome, so a pass
-- that is carried out late finds a mismatch instead of a lock that is held.
--
-- KEYS and ARGV[1] to ARGV[4] as in acquire.lua
-- ARGV[5]  the token that is over
-- ARGV[6]  how long the claim of a grant lasts, in milliseconds, or 0 to yield
-- ARGV[7]  anything, if the user may count the subscribers of a channel; otherwise left out
--
-- Returns what `ask` does; or {2, 1 if the asker is on the waiting list, 1 if the user may not hand the lock
-- over} if the lock is free now, after a yield or since no manager on the list listens.

local holder = redis.pcall('GET', KEYS[1])
if holder == ARGV[5] then
  local waiting = ARGV[6] == '0' or redis.pcall('ZCARD', KEYS[3])
  if waiting == 0 or type(waiting) == 'table' then
    local kept = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    if kept.err then
      drop(KEYS[1])
      return kept
    end
  else
    local granted = grant(KEYS[1], KEYS[3], ARGV[6], ARGV[7])
    if type(granted) == 'table' then
      return granted
    end
    local listed = 0
    if ARGV[4] == '1' then
      listed = wait(KEYS[3], ARGV[1], false)
    end
    if granted == 1 then
      return {0, redis.call('PTTL', KEYS[1]), 1, listed}
    end
    return {2, listed, granted == 2 and 1 or 0}
  end
else
  redis.pcall('ZREM', KEYS[3], ARGV[5])
end
return ask(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
