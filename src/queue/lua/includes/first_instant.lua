--- @include key_of

--- The earliest instant in a structure of a workflow (delayed | expiring | throttled), or nil.
local function firstInstant(base, workflow, kind)
  return tonumber(redis.call('ZRANGE', keyOf(base, workflow, kind), 0, 0, 'WITHSCORES')[2])
end
