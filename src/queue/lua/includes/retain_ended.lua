--- @include begin_retention
--- @include cascade_end
--- @include erase_job
--- @include key_of
--- @include parent_keeps

--- Keep a completed or cancelled job for its `result_ttl`: 0 drops it, -1 keeps it for ever. A child's record stays as
--- long as its parent may need it, and its time begins after that. Its steps go at once; of a cancelled child they go with
--- its parent, which may be retried and have it go on. `field` and `text` are what the record says of the end, `told` is as
--- `readTold` gives it. Returns whether the record stays.
local function retainEnded(base, workflow, id, spec, state, field, text, now, told)
  local link, kids = told[3], told[4]
  if spec.result_ttl == 0 then
    eraseJob(base, workflow, id, kids)
    return false
  end
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', state, field, text, 'finished', now)
  if kids then
    cascadeEnd(base, workflow, id, 'held', 'cancel')
    redis.call('UNLINK', keyOf(base, workflow, 'barrier', id))
  end
  local kept, events = parentKeeps(base, link, workflow, id), keyOf(base, workflow, 'events', id)
  if kept and state == 'cancelled' then
    redis.call('UNLINK', events)
  else
    redis.call('UNLINK', events, keyOf(base, workflow, 'steps', id))
  end
  if kept then
    redis.call('ZADD', keyOf(base, workflow, state), 'inf', id)
  else
    beginRetention(base, workflow, id, spec, state, now, kids)
  end
  return true
end
