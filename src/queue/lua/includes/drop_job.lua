--- @include cascade_end
--- @include erase_job
--- @include key_of
--- @include pass_on
--- @include publish_end
--- @include read_claim
--- @include read_clock
--- @include read_spec
--- @include read_told
--- @include release_active
--- @include release_group
--- @include settle_child
--- @include state_of
--- @include tell_worker
--- @include unplace_job

--- Remove a job and everything of it, and what it started with it. The claim of one that runs is lost, and its worker
--- told. Returns 1: removed | -1: there is no such job.
local function dropJob(base, workflow, id)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'holds')
  local state = stateOf(base, workflow, id, record[1], record[2])
  if not state then return -1 end
  local spec, told = readSpec(record[2]), readTold(base, workflow, id)
  if state == 'active' then
    tellWorker(base, readClaim(base, workflow, id), 'lost', workflow, id)
    releaseActive(base, workflow, id)
    releaseGroup(base, workflow, spec)
  else
    unplaceJob(base, workflow, id, spec, state, record[3])
  end
  publishEnd(base, workflow, id, spec, 'removed', '', false, told)
  if told[4] then cascadeEnd(base, workflow, id, 'children', 'remove') end
  eraseJob(base, workflow, id, told[4])
  local now = readClock()
  if told[3] then settleChild(base, workflow, id, told[3], 'removed', 'it was removed', now) end
  passOn(base, workflow, now)
  return 1
end
