--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include read_spec

--- A delayed or parked job becomes runnable now, at its old place if it had one.
local function wakeFromSleep(base, workflow, id)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'score', 'holds')
  redis.call('ZREM', keyOf(base, workflow, record[1]), id)
  redis.call('HDEL', job, 'awaits')
  addWaiting(base, workflow, id, readSpec(record[2]), tonumber(record[3] or nil), record[4])
  armWake(base, workflow)
end
