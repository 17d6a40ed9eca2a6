--- @include key_of
--- @include place_job

--- A job that exists becomes runnable (again): the record of one that waits has no state (see `stateOf`).
local function addWaiting(base, workflow, id, spec, score, holds)
  redis.call('HDEL', keyOf(base, workflow, 'j', id), 'state')
  placeJob(base, workflow, id, spec, score, holds)
end
