--- @include key_of

--- An id is used again whose record has expired: its entry among the ended jobs may still stand there.
local function forgetEnded(base, workflow, id)
  redis.call('ZREM', keyOf(base, workflow, 'completed'), id)
  redis.call('ZREM', keyOf(base, workflow, 'cancelled'), id)
end
