--- @include begin_undo
--- @include elaborate
--- @include finalize_cancelled
--- @include key_of
--- @include mark_claim
--- @include pass_on
--- @include read_claim
--- @include read_spec
--- @include read_told
--- @include state_of
--- @include tell_worker
--- @include unplace_job

--- Cancel a job (of the life `run`, empty: any) wherever it is. One that runs is marked, and its worker told: it will
--- end as cancelled whatever its attempt ends in.
--- Returns 1: it is, or will end as, cancelled | 0: it has ended otherwise | -1: there is no such job.
local function endJob(base, workflow, id, run, reason, now)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'holds')
  local state = stateOf(base, workflow, id, record[1], record[2])
  if not state then return -1 end
  local spec = readSpec(record[2])
  if run ~= '' and run ~= spec.run then return -1 end
  if state == 'cancelled' then return 1 end
  if state == 'completed' or state == 'failed' then return 0 end
  local undoing = redis.call('HGET', keyOf(base, workflow, 'steps', id), '//undo')
  if undoing then return string.sub(undoing, 1, 9) == 'cancelled' and 1 or 0 end
  if state == 'active' then
    if redis.call('HSETNX', job, 'cancel', reason) == 1 then
      local claim = readClaim(base, workflow, id)
      markClaim(base, workflow, id, claim, ELABORATE)
      tellWorker(base, claim, 'cancel', workflow, id, reason)
    end
    return 1
  end
  unplaceJob(base, workflow, id, spec, state, record[3])
  local place = redis.call('HGET', job, 'score')
  if beginUndo(base, workflow, id, spec, tonumber(place or nil), 'cancelled', reason) then return 1 end
  finalizeCancelled(base, workflow, id, spec, reason, now, readTold(base, workflow, id))
  passOn(base, workflow, now)
  return 1
end
