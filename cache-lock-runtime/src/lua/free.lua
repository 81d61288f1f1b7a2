-- The common case, with no command that it does not need: the lock is free, and its asker asks for one
-- number. The waiting list is not read: a waiter announces itself. Returns the number; in all other cases the
-- rest of the script decides.
local taken = false
if ARGV[3] == '1' and not ARGV[5] then
  local mine = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
  if mine then
    if mine.err then
      return mine
    end
    local number = reserve(KEYS[2], '1')
    if type(number) == 'table' then
      drop(KEYS[1])
    end
    return number
  end
  taken = true
end

