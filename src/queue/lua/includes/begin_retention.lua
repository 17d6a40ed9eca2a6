--- @include cascade_end
--- @include key_of
--- @include trim_ended

--- The time begins for which the record of a completed or cancelled job is kept. Its children's begins with it: until
--- then they were kept because it was.
local function beginRetention(base, workflow, id, spec, state, now, kids)
  local ttl, ended = spec.result_ttl, keyOf(base, workflow, state)
  if ttl < 0 then
    redis.call('ZADD', ended, 'inf', id)
    return
  end
  redis.call('PEXPIRE', keyOf(base, workflow, 'j', id), ttl)
  redis.call('PEXPIRE', keyOf(base, workflow, 'log', id), ttl)
  redis.call('ZADD', ended, now + ttl, id)
  trimEnded(base, workflow, state, now)
  if kids then
    cascadeEnd(base, workflow, id, 'children', 'release', true)
    redis.call('PEXPIRE', keyOf(base, workflow, 'children', id), ttl)
  end
end
