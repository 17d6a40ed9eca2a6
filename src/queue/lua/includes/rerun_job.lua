--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include read_spec

--- Have a job that failed for good run again, from its checkpoints; attempts and stalls count from the start.
--- Returns 1: runnable | 0: it has not failed | -1: there is no such job.
local function rerunJob(base, workflow, id)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec')
  if not record[1] then return -1 end
  if record[1] ~= 'failed' then return 0 end
  redis.call('ZREM', keyOf(base, workflow, 'failed'), id)
  -- a job that has been tried has checkpoints to read
  redis.call('HSET', job, 'failures', 0)
  redis.call('HDEL', job, 'started', 'stalls', 'score', 'failure', 'finished', 'cancel')
  addWaiting(base, workflow, id, readSpec(record[2]))
  armWake(base, workflow)
  return 1
end
