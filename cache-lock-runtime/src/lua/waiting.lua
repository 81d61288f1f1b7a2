-- The waiting list: a sorted set of the tokens under which managers wait, in the order of their
-- scores. A part of the scripts that wait.

-- Enters a token at the end, or keeps its place, and makes the list live for `life` milliseconds
-- from now, if it would end sooner. Returns an error, or nothing.
local function wait(list, token, life)
  if not redis.call('ZSCORE', list, token) then
    local last = redis.call('ZRANGE', list, -1, -1, 'WITHSCORES')
    local entered = redis.pcall('ZADD', list, (last[2] or 0) + 1, token)
    if type(entered) == 'table' then
      return entered
    end
  end
  if redis.call('PTTL', list) < tonumber(life) then
    redis.call('PEXPIRE', list, life)
  end
end

