--- @include cascade_end
--- @include erase_job
--- @include key_of

--- Keep a completed or cancelled job for its `result_ttl`: 0 drops it, -1 keeps it for ever. Its steps go at once.
--- `field` and `text` are what the record says of the end, `kids` whether it has children. Returns whether the record
--- stays.
local function retainEnded(base, workflow, id, spec, state, field, text, now, kids)
  local ttl = spec.result_ttl
  if ttl == 0 then
    eraseJob(base, workflow, id, kids)
    return false
  end
  local job, ended = keyOf(base, workflow, 'j', id), keyOf(base, workflow, state)
  redis.call('HSET', job, 'state', state, field, text, 'token', '', 'finished', now)
  if ttl > 0 then
    redis.call('PEXPIRE', job, ttl)
    redis.call('PEXPIRE', keyOf(base, workflow, 'log', id), ttl)
    redis.call('ZADD', ended, now + ttl, id)
  else
    redis.call('ZADD', ended, 'inf', id)
  end
  redis.call('UNLINK', keyOf(base, workflow, 'steps', id), keyOf(base, workflow, 'events', id))
  if kids then
    cascadeEnd(base, workflow, id, 'held', 'cancel')
    redis.call('UNLINK', keyOf(base, workflow, 'barrier', id))
    if ttl > 0 then redis.call('PEXPIRE', keyOf(base, workflow, 'children', id), ttl) end
  end
  return true
end
