--- @include add_waiting
--- @include arm_wake
--- @include await_again
--- @include begin_anew
--- @include key_of
--- @include park_again
--- @include park_child
--- @include read_clock
--- @include read_parent
--- @include read_spec
--- @include running_children

--- Have a job that failed for good (or, below a parent that runs again, was cancelled) run again: from its checkpoints, or
--- from the beginning where what it has done was undone. Attempts and stalls count from the start. What its children gave
--- stays; those of its flow that did not succeed run again too, and it waits for them; those that its run has started are
--- started again by it. One that has children is parked until `rerun_children` has seen to all of them.
--- `place`: nil for a job that is retried by hand, whose parent waits for it again if it has not gone on without it; for a
--- child that its parent has started again now | held (back, until fewer run) | flow.
--- Returns 1: it will run | 0: it has not failed | -1: there is no such job.
local function rerunJob(base, workflow, id, place)
  local job, steps = keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'parent', 'kids')
  local state, text = record[1], record[2]
  if not text then return -1 end
  if state ~= 'failed' and not (place and state == 'cancelled') then return 0 end
  redis.call('ZREM', keyOf(base, workflow, state), id)
  redis.call('PERSIST', job)
  redis.call('PERSIST', keyOf(base, workflow, 'log', id))
  redis.call('PERSIST', keyOf(base, workflow, 'children', id))
  local parent = record[3] and readParent(record[3])
  if parent and not place and awaitAgain(base, workflow, id, parent) and parent.most > 0 then
    local running = runningChildren(base, parent.workflow, parent.id, parent.barrier)
    place = running > parent.most and 'held' or 'now'
  end
  local anew = state == 'cancelled' or redis.call('HEXISTS', steps, '//undo') == 1
  if anew then text = beginAnew(base, workflow, id, text, record[4]) end
  redis.call('HDEL', steps, '//undos')
  -- a job that has been tried has checkpoints to read
  redis.call('HSET', job, 'failures', 0)
  redis.call('HDEL', job, 'started', 'stalls', 'score', 'failure', 'reason', 'finished', 'cancel', 'awaits', 'holds', 'news',
    'waiters', 'watchers')
  if place == 'held' then
    parkChild(base, parent.workflow, parent.id, parent.barrier, parent.path, workflow, id, true, readClock())
  end
  if record[4] then
    parkAgain(base, workflow, id, anew and 'anew' or 'again', 'rerun')
  elseif place ~= 'held' then
    addWaiting(base, workflow, id, readSpec(text))
    armWake(base, workflow)
  end
  return 1
end
