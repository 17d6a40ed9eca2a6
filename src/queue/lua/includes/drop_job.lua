--- @include erase_job
--- @include key_of
--- @include publish_end
--- @include read_spec
--- @include release_active
--- @include rest_counter
--- @include tell_worker
--- @include unplace_job

--- Remove a job and everything of it. The claim of one that runs is lost, and its worker told.
--- Returns 1: removed | -1: there is no such job.
local function dropJob(base, workflow, id)
  local record =
    redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'waiters', 'holds', 'token', 'watchers')
  if not record[1] then return -1 end
  local spec = readSpec(record[2])
  if record[1] == 'active' then
    tellWorker(base, record[5], 'lost', workflow, id)
    releaseActive(base, workflow, id, spec, false)
  else
    unplaceJob(base, workflow, id, spec, record[1], record[4])
  end
  publishEnd(base, workflow, id, spec, 'removed', '', record[3], false, record[6])
  eraseJob(base, workflow, id)
  restCounter(base, workflow)
  return 1
end
