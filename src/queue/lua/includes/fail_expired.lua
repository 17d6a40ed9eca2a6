--- @include finalize_failed
--- @include key_of

--- A job that was not started by the time it had: it fails as expired.
local function failExpired(base, workflow, id, spec, now)
  local failure = cjson.encode({
    type = 'JobExpiredError', message = string.format('not started within %.0f ms', spec.expires),
  })
  local told = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'waiters', 'watchers')
  finalizeFailed(base, workflow, id, spec, failure, now, told[1], told[2])
end
