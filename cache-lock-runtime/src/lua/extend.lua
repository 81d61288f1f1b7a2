-- Extends leases to a time from now. A lease that ends later stays as it is.
--
-- KEYS[i]        a lock
-- ARGV[2i - 1]   its owner token
-- ARGV[2i]       how long the lease is to last, in milliseconds
--
-- Returns for each lock 1 if it is the owner's, 0 if it is gone or another owner's. An expired lock is never
-- made again.

local kept = {}
for i, lock in ipairs(KEYS) do
  local holder = redis.pcall('GET', lock)
  if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
    return holder
  end
  kept[i] = 0
  if holder == ARGV[2 * i - 1] then
    kept[i] = 1
    if redis.call('PTTL', lock) < tonumber(ARGV[2 * i]) then
      redis.call('PEXPIRE', lock, ARGV[2 * i])
    end
  end
end
return kept
