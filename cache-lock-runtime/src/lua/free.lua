-- The common case, with nothing but the commands that it needs: the lock is free, and its asker has
-- nobody to hand it to. It is not looked whether somebody else waits: who does says so. Returns the
-- number; in all other cases the rest of the script decides.
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

