-- Tells a manager something about its token. Returns how many have heard it, or an error where the
-- user may not publish. Tokens that begin otherwise are those of other libraries, and of managers that
-- neither tell nor are told.
--
-- PUBLISH counts each subscriber of a pattern, too, such as a monitoring tool. With `counts`, the user may ask
-- how many subscribe to the inbox itself: none does for a manager that has died.
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

