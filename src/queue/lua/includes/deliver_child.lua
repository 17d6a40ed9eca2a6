--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include outstanding_children
--- @include read_spec
--- @include release_held
--- @include tell_worker
--- @include unplace_job
--- @include wake_from_sleep
local CHILD_MARKS = { completed = ':', failed = '!', cancelled = '~', removed = '~' }

--- Write a child's end among its parent's checkpoints, and have the parent go on if this was the last it waited for, or
--- if it is not to wait any longer. `parent`: workflow, id, nonce, barrier, path and policy (fail | continue), a line
--- each; an empty barrier is that of a flow, whose parent has not begun.
--- A child counts once, in the life of the parent that it was made for; nothing is resurrected.
--- Returns the parent (workflow, id, spec, failure, told) where it has to fail now, or nil.
local function deliverChild(base, workflow, id, parent, state, text, now)
  local above, aboveId, run, barrier, path, policy =
    string.match(parent, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$')
  local job = keyOf(base, above, 'j', aboveId)
  local record =
    redis.call('HMGET', job, 'state', 'spec', 'token', 'awaits', 'waiters', 'watchers', 'parent', 'kids', 'holds')
  if not record[1] then return nil end
  local spec, standing = readSpec(record[2]), record[1]
  if spec.run ~= run or standing == 'completed' or standing == 'cancelled' then return nil end
  local member = barrier .. '\n' .. workflow .. ':' .. id
  if redis.call('ZREM', keyOf(base, above, 'barrier', aboveId), member) == 0 then return nil end
  redis.call('HSET', keyOf(base, above, 'steps', aboveId), path, 'child' .. CHILD_MARKS[state] .. text)
  releaseHeld(base, above, aboveId, barrier)
  if standing == 'failed' then return nil end
  local broken = state ~= 'completed' and policy == 'fail'
  if not broken and outstandingChildren(base, above, aboveId, barrier) > 0 then return nil end
  if barrier == '' then
    if broken then
      unplaceJob(base, above, aboveId, spec, standing, record[9])
      local failure = cjson.encode({
        type = 'ChildFailedError', message = string.format('child %s of workflow %s has %s', id, workflow, state),
      })
      return {
        workflow = above, id = aboveId, spec = spec, failure = failure,
        told = { record[5], record[6], record[7], record[8] },
      }
    end
    redis.call('ZREM', keyOf(base, above, 'parked'), aboveId)
    addWaiting(base, above, aboveId, spec)
    armWake(base, above)
  elseif standing == 'active' then
    -- seen at the latest when the run decides to sleep
    redis.call('HSET', job, 'news', '1')
    tellWorker(base, record[3], 'child', above, aboveId, barrier)
  elseif record[4] and string.find('\n' .. record[4] .. '\n', '\n\t' .. barrier .. '\n', 1, true) then
    wakeFromSleep(base, above, aboveId)
  end
  return nil
end
