-- Reserves fencing numbers. A part of the scripts that grant the lock to their asker.
--
-- A block is reserved backwards, from the server's time into the past: its numbers are those of the time
-- that passed without a grant. So no number is ever ahead of the time, and when the data is lost, the time
-- is above all numbers given out before. Without a last number that past may be reserved already, so the
-- block has one number.
--
-- The last number is kept for a day; after that the time alone keeps the numbers rising.
--
-- A string that is not a fencing number is put back, without the expiry that it may have had: to keep that
-- would cost one more command in each grant of a new key.
--
-- Returns the lowest and the highest number as text, or an error. Lua's own conversion would round them to 14
-- digits, and that of Redis takes longer than all the rest.
local function reserve(fence, block)
  local time = redis.pcall('TIME')
  if time.err then
    -- Servers refuse it in many words, and some do not name the command.
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
  -- From 2^53 on doubles leave numbers out, so a fencing number and the one after it are below that.
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

