-- The value that a single flight has recorded, and how long it lasts, in milliseconds.
--
-- KEYS[1]  the value
--
-- Returns both, or nil if there is none.

local value = redis.call('GET', KEYS[1])
return value and {value, redis.call('PTTL', KEYS[1])}
