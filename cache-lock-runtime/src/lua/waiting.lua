-- The waiting list: a sorted set of the tokens under which managers wait, in the order of their
-- scores. It lives for 5 s after the last request of any of them. They ask every second or so: the token of a
-- dead manager goes with the list, or when its turn comes. A part of the scripts that wait.

-- A token joins at the end; a `listed` one may be there already, and keeps its place. Returns 1, or 0 if the
-- user or the server does not permit it: then its manager polls.
local function wait(list, token, listed)
  local place = listed and redis.pcall('ZSCORE', list, token)
  if not place or type(place) == 'table' then
    local last = redis.pcall('ZRANGE', list, -1, -1, 'WITHSCORES')
    if last.err then
      return 0
    end
    if type(redis.pcall('ZADD', list, (last[2] or 0) + 1, token)) == 'table' then
      return 0
    end
  end
  -- Without an end, the list would keep the tokens of dead managers.
  if type(redis.pcall('PEXPIRE', list, 5000)) == 'table' then
    redis.pcall('ZREM', list, token)
    return 0
  end
  return 1
end

