--- @include add_waiting
--- @include arm_wake
--- @include begin_undo
--- @include erase_job
--- @include finalize_cancelled
--- @include finalize_failed
--- @include key_of
--- @include pass_on
--- @include place_of
--- @include read_claim
--- @include read_spec
--- @include read_told
--- @include release_active
--- @include release_group
--- @include tell_worker
--- @include write_start

--- Take back one claim whose worker is gone: the job returns to its place; one that has stalled too often in a row
--- fails, and one whose cancellation was asked for is cancelled. The worker, should it live after all, is told.
--- Returns 'recovered' | 'stalled' | 'cancelled', or nil where the claim had no record, or there is none.
local function recoverClaim(base, workflow, id, now)
  local job = keyOf(base, workflow, 'j', id)
  local record, claim = redis.call('HMGET', job, 'state', 'spec', 'cancel'), readClaim(base, workflow, id)
  -- who looks for claims may find one twice
  if not claim then return nil end
  local group = string.match(claim, '\n(.*)$')
  -- a record without a state would wait, if it were not for its claim
  if (record[1] or record[2] and 'active') ~= 'active' then
    releaseActive(base, workflow, id)
    -- its worker may have written beside a record that was gone
    if not record[2] then eraseJob(base, workflow, id) end
    if group then releaseGroup(base, workflow, { group = group }) end
    return nil
  end
  writeStart(base, workflow, id, claim)
  local spec, place = readSpec(record[2]), placeOf(claim)
  tellWorker(base, claim, 'lost', workflow, id)
  local stalls = record[3] and 0 or redis.call('HINCRBY', job, 'stalls', 1)
  local goesOn = not record[3] and stalls <= spec.max_stalled
  local holds = goesOn and spec.strict and spec.group ~= ''
  releaseActive(base, workflow, id)
  -- the claim's, where it says: a record that is gone may have come again, with another group
  if not holds then releaseGroup(base, workflow, group and { group = group } or spec) end
  if place then redis.call('HSET', job, 'score', place) end
  if holds then redis.call('HSET', job, 'holds', '1') else redis.call('HDEL', job, 'holds') end
  if record[3] then
    if beginUndo(base, workflow, id, spec, place, 'cancelled', record[3]) then return 'recovered' end
    finalizeCancelled(base, workflow, id, spec, record[3], now, readTold(base, workflow, id))
    passOn(base, workflow, now)
    return 'cancelled'
  end
  if not goesOn then
    local failure = cjson.encode({
      type = 'StalledError',
      message = string.format('its worker was lost %d times in a row without any progress between', stalls),
    })
    if beginUndo(base, workflow, id, spec, place, 'failed', failure) then return 'recovered' end
    finalizeFailed(base, workflow, id, spec, failure, now, readTold(base, workflow, id))
    passOn(base, workflow, now)
    return 'stalled'
  end
  addWaiting(base, workflow, id, spec, place, holds)
  armWake(base, workflow)
  return 'recovered'
end
