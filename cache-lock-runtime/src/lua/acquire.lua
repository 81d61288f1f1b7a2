-- Takes the lock, if it is free or already the asker's, and numbers the grant.
--
-- KEYS[1]  the lock: a plain string, as SET key token NX PX leaves it
-- KEYS[2]  the fence: the last number given out for this lock
-- ARGV[1]  the owner token of the asker
-- ARGV[2]  how long the lease lasts, in milliseconds
-- ARGV[3]  how long the fence is kept, in milliseconds
--
-- Returns {1, number} if the lock is the asker's, and {0, remaining milliseconds} if it is
-- somebody else's; -1 there says that the record has no expiry. A failure of any kind, a record
-- that is not ours among them, leaves nothing behind and is returned as an error.

local mine = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if type(mine) == 'table' and mine.err then
  return mine
end

if not mine then
  local holder = redis.pcall('GET', KEYS[1])
  if type(holder) == 'table' then
    return holder
  end
  local remaining = redis.call('PTTL', KEYS[1])
  if holder ~= ARGV[1] then
    return {0, remaining}
  end
  -- The asker's own: the reply to an earlier request was lost. Never shorten it.
  if remaining < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
end

-- The number comes from the clock, so that it goes on rising when the data is lost, and from the
-- last one, so that it rises when the clock does not. Its reply goes out as an integer; where it
-- becomes text, Lua's own conversion would round it to 14 digits.
local function number()
  local last = redis.pcall('GET', KEYS[2])
  if type(last) == 'table' then
    return last
  end
  -- A number that has none after it below 2^53, where doubles begin to leave some out, is not ours.
  if last and not (last:match('^%d+$') and tonumber(last) < 9007199254740991) then
    return {err = 'WRONGTYPE the fence is not a number below 2^53'}
  end
  local time = redis.pcall('TIME')
  if time.err then
    return time
  end
  local fence = time[1] * 1000000 + time[2]
  if last and tonumber(last) >= fence then
    fence = tonumber(last) + 1
  end
  local kept = redis.pcall('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[3])
  if kept.err then
    return kept
  end
  return {1, fence}
end

local granted = number()
if granted.err then
  redis.call('DEL', KEYS[1])
end
return granted
