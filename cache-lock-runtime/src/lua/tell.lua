-- Tells a manager something about its token. Returns how many have heard it, or an error where the
-- user may not publish. Tokens that begin otherwise are those of other libraries, and of managers that
-- neither tell nor are told.
local function tell(what, token, lock)
  local inbox = token:match('^(cl1:.+):')
  if not inbox then
    return 0
  end
  return redis.pcall('PUBLISH', inbox, what .. ' ' .. token .. ' ' .. lock)
end

