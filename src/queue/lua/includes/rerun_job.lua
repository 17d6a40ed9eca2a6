--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include outstanding_children
--- @include read_spec

--- Have a job that failed for good (or, below one, was cancelled) run again, from its checkpoints; attempts and stalls
--- count from the start. Of its children those that did not succeed run again too, and a flow waits for them; a parent
--- that has not ended waits for the job again.
--- Returns 1: it will run | 0: it has not failed | -1: there is no such job.
local function rerunJob(base, workflow, id, below)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'parent', 'kids')
  if not record[1] then return -1 end
  if record[1] ~= 'failed' and not (below and record[1] == 'cancelled') then return 0 end
  redis.call('ZREM', keyOf(base, workflow, record[1]), id)
  redis.call('PERSIST', job)
  redis.call('HDEL', keyOf(base, workflow, 'steps', id), '//undo', '//undos')
  -- a job that has been tried has checkpoints to read
  redis.call('HSET', job, 'failures', 0)
  redis.call('HDEL', job, 'started', 'stalls', 'score', 'failure', 'reason', 'finished', 'cancel')
  if record[3] then
    local above, aboveId, run, barrier, path =
      string.match(record[3], '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n')
    local parent = redis.call('HMGET', keyOf(base, above, 'j', aboveId), 'state', 'spec')
    if parent[1] and parent[1] ~= 'completed' and parent[1] ~= 'cancelled' and readSpec(parent[2]).run == run then
      redis.call('ZADD', keyOf(base, above, 'barrier', aboveId), 0, barrier .. '\n' .. workflow .. ':' .. id)
      redis.call('HDEL', keyOf(base, above, 'steps', aboveId), path)
    end
  end
  if record[4] then
    for _, member in ipairs(redis.call('ZRANGE', keyOf(base, workflow, 'children', id), 0, -1)) do
      local path, child, childId = string.match(member, '^([^\n]*)\n([^:]*):(.*)$')
      local ended = string.sub(redis.call('HGET', keyOf(base, workflow, 'steps', id), path) or '', 1, 6)
      if ended == 'child!' or ended == 'child~' then rerunJob(base, child, childId, true) end
    end
    if outstandingChildren(base, workflow, id, '') > 0 then
      redis.call('HSET', job, 'state', 'parked')
      redis.call('ZADD', keyOf(base, workflow, 'parked'), redis.call('TIME')[1] * 1000, id)
      return 1
    end
  end
  addWaiting(base, workflow, id, readSpec(record[2]))
  armWake(base, workflow)
  return 1
end
