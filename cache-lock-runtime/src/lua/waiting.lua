-- The waiting list: a sorted set of the tokens under which managers wait, in the order of their
-- scores. It lives for 5 s after the last of them has asked. They ask every second or so: who has
-- died vanishes with the list, or when its turn comes. A part of the scripts that wait.

-- Enters a token at the end; one that is `listed` may be there already, and keeps its place. Returns
-- an error, or nothing.
local function wait(list, token, listed)
  if not (listed and redis.call('ZSCORE', list, token)) then
    local last = redis.call('ZRANGE', list, -1, -1, 'WITHSCORES')
    local entered = redis.pcall('ZADD', list, (last[2] or 0) + 1, token)
    if type(entered) == 'table' then
      return entered
    end
  end
  redis.call('PEXPIRE', list, 5000)
end

