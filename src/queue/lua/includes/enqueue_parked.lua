--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include read_spec

--- A parked job becomes runnable for the first time. Returns whether there was one.
local function enqueueParked(base, workflow, id)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec')
  if record[1] ~= 'parked' then return false end
  redis.call('ZREM', keyOf(base, workflow, 'parked'), id)
  addWaiting(base, workflow, id, readSpec(record[2]))
  armWake(base, workflow)
  return true
end
