--- @include key_of
--- @include place_job

--- A job that exists becomes runnable (again): its state and its place.
local function addWaiting(base, workflow, id, spec, score, holds)
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', 'waiting')
  placeJob(base, workflow, id, spec, score, holds)
end
