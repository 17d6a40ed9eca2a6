--- @include arm_wake
--- @include key_of
--- @include place_job

--- A fresh job that can run at once: record (without a state: see `stateOf`), place, wake-up. `spec` is the table of `text`.
local function enqueueNow(base, workflow, id, spec, text, data)
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'data', data, 'spec', text)
  placeJob(base, workflow, id, spec)
  armWake(base, workflow)
end
