--- @include key_of
--- @include note_outdating
--- @include publish_end
--- @include trim_failed

--- Enter a job as failed for good, with its steps, so that a retry by hand goes on from them. `told`: as `readTold`
--- gives it; the parent is for the caller to tell. Returns what `trimFailed` does.
local function failRecord(base, workflow, id, spec, failure, now, told)
  local job = keyOf(base, workflow, 'j', id)
  redis.call('HSET', job, 'state', 'failed', 'failure', failure, 'finished', now)
  redis.call('HDEL', job, 'waiters', 'watchers', 'holds', 'awaits')
  -- a parent may fail in the same instant as its child, and is the younger of the two
  local failed = keyOf(base, workflow, 'failed')
  local last = redis.call('ZRANGE', failed, -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', failed, string.format('%.3f', math.max(now, tonumber(last or 0) + 0.001)), id)
  if spec.keep_failed[2] > 0 then noteOutdating(base, workflow, id, now, spec.keep_failed[2]) end
  publishEnd(base, workflow, id, spec, 'failed', failure, spec.keep_failed[1] ~= 0, told)
  return trimFailed(base, workflow, spec.keep_failed[1], spec.keep_failed[2], now)
end
