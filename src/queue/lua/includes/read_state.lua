--- @include key_of
--- @include state_of

--- A job's state, or nil where there is no such job.
local function readState(base, workflow, id)
  return stateOf(base, workflow, id, unpack(redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec')))
end
