--- @include key_of
--- @include publish_end
--- @include trim_failed

--- The job has failed for good: kept with its steps, so that a retry by hand goes on from them.
local function finalizeFailed(base, workflow, id, spec, failure, now, waiters, watchers)
  local job = keyOf(base, workflow, 'j', id)
  redis.call('HSET', job, 'state', 'failed', 'failure', failure, 'token', '', 'finished', now)
  redis.call('HDEL', job, 'waiters', 'watchers', 'holds', 'awaits')
  redis.call('ZADD', keyOf(base, workflow, 'failed'), now, id)
  publishEnd(base, workflow, id, spec, 'failed', failure, waiters, spec.keep_failed[1] ~= 0, watchers)
  trimFailed(base, workflow, spec.keep_failed[1], spec.keep_failed[2], now)
end
