--- @include enqueue_parked
--- @include held_member
--- @include key_of
--- @include outstanding_children
--- @include read_claim
--- @include read_parent
--- @include read_spec
--- @include release_held
--- @include state_of
--- @include tell_worker
--- @include unplace_job
--- @include wake_from_sleep
--- @include write_end
local BROKEN_TYPES = { failed = 'ChildFailedError', cancelled = 'ChildCancelledError', removed = 'ChildCancelledError' }
local BROKEN_VERBS = { failed = 'has failed', cancelled = 'was cancelled', removed = 'was removed' }

--- Write a child's end among its parent's checkpoints, and have the parent go on if this was the last it waited for, or
--- if it is not to wait any longer. `link`: the child's link to its parent; with an empty barrier it is that of a flow,
--- whose parent has not begun.
--- A child counts once, in the life of the parent that it was made for; nothing is resurrected.
--- Returns the parent (workflow, id, spec, failure, told) where it has to fail now, or nil.
local function deliverChild(base, workflow, id, link, state, text, now)
  local parent = readParent(link)
  local above, aboveId, barrier = parent.workflow, parent.id, parent.barrier
  local job = keyOf(base, above, 'j', aboveId)
  local record = redis.call('HMGET', job, 'state', 'spec', 'awaits', 'waiters', 'watchers', 'parent', 'kids', 'holds')
  local standing, member = stateOf(base, above, aboveId, record[1], record[2]), workflow .. ':' .. id
  if not standing then return nil end
  local spec = readSpec(record[2])
  if spec.run ~= parent.run or standing == 'completed' or standing == 'cancelled' then return nil end
  if redis.call('ZREM', keyOf(base, above, 'barrier', aboveId), barrier .. '\n' .. member) == 0 then return nil end
  if record[3] == '\t//undo' then
    -- it was cancelled, and undoes once all that it started has ended, however
    if redis.call('EXISTS', keyOf(base, above, 'barrier', aboveId)) == 0 then wakeFromSleep(base, above, aboveId) end
    return nil
  end
  writeEnd(base, above, aboveId, barrier, parent.path, workflow, id, state, text)
  if parent.most > 0 then
    redis.call('ZREM', keyOf(base, above, 'held', aboveId), heldMember(barrier, parent.path, member))
    releaseHeld(base, above, aboveId, barrier, parent.most)
  end
  if standing == 'failed' then return nil end
  local broken = state ~= 'completed' and parent.policy == 'fail'
  if not broken and outstandingChildren(base, above, aboveId, barrier) > 0 then return nil end
  if barrier == '' then
    if broken then
      unplaceJob(base, above, aboveId, spec, standing, record[8])
      local message = string.format('child %s of workflow %s %s', id, workflow, BROKEN_VERBS[state])
      return {
        workflow = above, id = aboveId, spec = spec,
        failure = cjson.encode({ type = BROKEN_TYPES[state], message = message }),
        told = { record[4], record[5], record[6], record[7] },
      }
    end
    enqueueParked(base, above, aboveId)
  elseif standing == 'active' then
    -- seen at the latest when the run decides to sleep
    redis.call('HSET', job, 'news', '1')
    tellWorker(base, readClaim(base, above, aboveId), 'child', above, aboveId, barrier)
  elseif record[3] and string.find('\n' .. record[3] .. '\n', '\n\t' .. barrier .. '\n', 1, true) then
    wakeFromSleep(base, above, aboveId)
  end
  return nil
end
