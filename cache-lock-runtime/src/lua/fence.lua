-- Reserves fencing numbers. A part of the scripts that grant the lock to their asker.
--
-- A block is reserved backwards, from the server's time into the past: the numbers that it takes
-- are those of the time that went by without a grant. So none is ever ahead of the time, and when
-- the data is lost, the time alone is above all that were given out. Without a last number that
-- past may have been reserved from before, so the block is a single one.
--
-- Returns {1, lowest, highest}, or the error that kept it from reserving. Numbers leave as integers;
-- where one becomes text, Lua's own conversion would round it to 14 digits.
local function reserve(fence, keep, block)
  local last = redis.pcall('GET', fence)
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
  local high = time[1] * 1000000 + time[2]
  local low = high
  if last then
    local next = tonumber(last) + 1
    high = math.max(high, next)
    low = math.max(next, high - block + 1)
  end
  local kept = redis.pcall('SET', fence, string.format('%.0f', high), 'PX', keep)
  if kept.err then
    return kept
  end
  return {1, low, high}
end

