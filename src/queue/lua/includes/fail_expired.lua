--- @include finalize_failed
--- @include read_told

--- A job that was not started by the time it had: it fails as expired.
local function failExpired(base, workflow, id, spec, now)
  local failure = cjson.encode({
    type = 'JobExpiredError', message = string.format('not started within %d ms', spec.expires),
  })
  finalizeFailed(base, workflow, id, spec, failure, now, readTold(base, workflow, id))
end
