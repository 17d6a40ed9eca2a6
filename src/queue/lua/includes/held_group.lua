--- @include key_of
--- @include read_spec

--- The group that a waiting job has kept since its last run, or nil.
local function heldGroup(base, workflow, id)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'holds', 'spec')
  return record[1] and readSpec(record[2]).group or nil
end
