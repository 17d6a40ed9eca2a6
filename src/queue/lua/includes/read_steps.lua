--- @include key_of
local STEPS_SENT = 1048576
local FIELDS_SENT = 2000
local STEPS_LEFT = STEPS_SENT

--- A job's checkpoints as a flat list, or false where they are too many or too large to be sent along: a script sends 1 MB
--- of them, as they are stored; the worker reads the rest.
local function readSteps(base, workflow, id)
  local key = keyOf(base, workflow, 'steps', id)
  if redis.call('HLEN', key) > FIELDS_SENT then return false end
  local size = redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0) or 0
  if size > STEPS_LEFT then return false end
  STEPS_LEFT = STEPS_LEFT - size
  return redis.call('HGETALL', key)
end
