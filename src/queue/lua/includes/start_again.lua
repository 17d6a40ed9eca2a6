--- @include add_waiting
--- @include arm_wake
--- @include held_member
--- @include key_of
--- @include outstanding_children
--- @include read_parent
--- @include read_spec

--- A parked job that was to be prepared before it can run again, is: it does, unless it waits for children of its flow, or
--- is held back itself.
local function startAgain(base, workflow, id)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'spec', 'parent')
  redis.call('HDEL', job, 'awaits')
  if record[2] then
    local parent = readParent(record[2])
    local member = heldMember(parent.barrier, parent.path, workflow .. ':' .. id)
    if redis.call('ZSCORE', keyOf(base, parent.workflow, 'held', parent.id), member) then return end
  end
  if outstandingChildren(base, workflow, id, '') > 0 then return end
  redis.call('ZREM', keyOf(base, workflow, 'parked'), id)
  addWaiting(base, workflow, id, readSpec(record[1]))
  armWake(base, workflow)
end
