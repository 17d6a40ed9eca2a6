--- @include key_of

--- Ids may be used again whose records have expired: their entries among the ended jobs may still stand there.
local function forgetEnded(base, workflow, ...)
  redis.call('ZREM', keyOf(base, workflow, 'completed'), ...)
  redis.call('ZREM', keyOf(base, workflow, 'cancelled'), ...)
end
