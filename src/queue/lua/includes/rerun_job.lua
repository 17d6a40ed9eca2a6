--- @include add_waiting
--- @include arm_wake
--- @include await_again
--- @include begin_anew
--- @include key_of
--- @include outstanding_children
--- @include park_child
--- @include read_clock
--- @include read_parent
--- @include read_spec
--- @include running_children
--- @include write_end

--- Have a job that failed for good (or, below a parent that runs again, was cancelled) run again: from its checkpoints, or
--- from the beginning where what it has done was undone. Attempts and stalls count from the start. What its children gave
--- stays; those of its flow that did not succeed run again too, and it waits for them; those that its run has started are
--- started again by it.
--- `place`: nil for a job that is retried by hand, whose parent waits for it again if it has not gone on without it; for a
--- child that its parent has started again now | held (back, until fewer run) | flow.
--- Returns 1: it will run | 0: it has not failed | -1: there is no such job.
local function rerunJob(base, workflow, id, place)
  local job, steps = keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'parent', 'kids')
  local state, text = record[1], record[2]
  if not state then return -1 end
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
  if state == 'cancelled' or redis.call('HEXISTS', steps, '//undo') == 1 then
    text = beginAnew(base, workflow, id, text, record[4])
  end
  redis.call('HDEL', steps, '//undos')
  -- a job that has been tried has checkpoints to read
  redis.call('HSET', job, 'failures', 0)
  redis.call('HDEL', job, 'started', 'stalls', 'score', 'failure', 'reason', 'finished', 'cancel', 'awaits', 'holds', 'news',
    'waiters', 'watchers')
  if record[4] then
    local barrier = keyOf(base, workflow, 'barrier', id)
    for _, member in ipairs(redis.call('ZRANGE', keyOf(base, workflow, 'children', id), 0, -1)) do
      local path, child, childId = string.match(member, '^([^\n]*)\n([^:]*):(.*)$')
      local ended = string.sub(redis.call('HGET', steps, path) or '', 1, 6)
      local flow = string.sub(path, 1, 2) == '//'
      if not flow then
        if ended == 'child!' or ended == 'child~' then
          local map = string.match(path, '^(.*)/%d+$')
          redis.call('HDEL', steps, path)
          if map and string.sub(redis.call('HGET', steps, map) or '', 1, 6) == 'child@' then
            redis.call('HDEL', steps, map)
          end
        end
      elseif ended ~= 'child:' then
        local found = redis.call('HMGET', keyOf(base, child, 'j', childId), 'state', 'result')
        if found[1] == 'completed' then
          writeEnd(base, workflow, id, '', path, child, childId, 'completed', found[2])
        elseif found[1] then
          redis.call('ZADD', barrier, 0, '\n' .. child .. ':' .. childId)
          redis.call('HDEL', steps, path)
          rerunJob(base, child, childId, 'flow')
        elseif ended == '' then
          writeEnd(base, workflow, id, '', path, child, childId, 'removed', 'it was removed')
        end
      end
    end
  end
  if place == 'held' then
    parkChild(base, parent.workflow, parent.id, parent.barrier, parent.path, workflow, id, true, readClock())
  elseif record[4] and outstandingChildren(base, workflow, id, '') > 0 then
    redis.call('HSET', job, 'state', 'parked')
    redis.call('ZADD', keyOf(base, workflow, 'parked'), readClock(), id)
  else
    addWaiting(base, workflow, id, readSpec(text))
    armWake(base, workflow)
  end
  return 1
end
