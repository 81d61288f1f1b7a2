-- Reserves fencing numbers. A part of the scripts that grant the lock to their asker.
--
-- A block is reserved backwards, from the server's time into the past: the numbers that it takes
-- are those of the time that went by without a grant. So none is ever ahead of the time, and when
-- the data is lost, the time alone is above all that were given out. Without a last number that
-- past may have been reserved from before, so the block is a single one.
--
-- The last number is kept for a day; after that the time alone keeps the numbers rising.
--
-- A string that is no number of ours is put back, without the expiry that it may have had: to look at that
-- first, or to keep it, takes one more command of each grant of a new key.
--
-- Returns the lowest and the highest number as text, or the error that kept it from reserving. Lua's
-- own conversion would round them to 14 digits, and that of Redis takes longer than all the rest.
local function reserve(fence, block)
  local time = redis.pcall('TIME')
  if time.err then
    -- Servers refuse it in many words, of which some do not name it.
    return {err = 'NOTIME ' .. time.err}
  end
  local now = time[1] .. ('000000'):sub(#time[2] + 1) .. time[2]
  local last = redis.pcall('SET', fence, now, 'PX', '86400000', 'GET')
  if not last then
    return now, now
  end
  if type(last) == 'table' then
    return last
  end
  local digits = last:find('^%d+$')
  if block == '1' and digits and #last == #now and last < now then
    return now, now
  end
  -- A number that has none after it below 2^53, where doubles begin to leave some out, is not ours.
  local next = digits and tonumber(last) + 1
  if not next or next > 9007199254740991 then
    redis.call('SET', fence, last)
    return {err = 'WRONGTYPE the fence is not a number below 2^53'}
  end
  local high = tonumber(now)
  -- The server's clock was set back.
  if next > high then
    high = next
    now = string.format('%.0f', high)
    redis.call('SET', fence, now, 'PX', '86400000')
  end
  return string.format('%.0f', math.max(next, high - block + 1)), now
end

