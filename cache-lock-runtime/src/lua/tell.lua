-- Publishes to the inbox of a token's manager. Returns the number of its subscribers, or an error if the user
-- may not publish. A token without `cl1:` belongs to another library, or to a manager without pushes.
--
-- PUBLISH also counts each subscriber of a pattern, such as a monitoring tool. With `counts`, the user may
-- count the subscribers of the inbox itself: that of a dead manager has none.
local function tell(what, token, lock, counts)
  local inbox = token:match('^(cl1:.+):')
  if not inbox then
    return 0
  end
  local heard = redis.pcall('PUBLISH', inbox, what .. ' ' .. token .. ' ' .. lock)
  if counts and type(heard) == 'number' and heard > 0 then
    local subscribers = redis.pcall('PUBSUB', 'NUMSUB', inbox)
    return subscribers[2] or heard
  end
  return heard
end

