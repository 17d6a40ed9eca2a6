--- @include arm_clock
--- @include key_of

--- Have a job wait for an instant; a new earliest one makes a worker set its timer.
local function addDelayed(base, workflow, id, instant)
  local delayed = keyOf(base, workflow, 'delayed')
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', 'delayed')
  redis.call('ZADD', delayed, instant, id)
  if redis.call('ZRANGE', delayed, 0, 0)[1] == id then armClock(base, workflow) end
end
