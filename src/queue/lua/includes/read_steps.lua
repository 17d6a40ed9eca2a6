--- @include key_of
local STEPS_SENT = 1048576
local STEPS_LEFT = STEPS_SENT

--- A job's checkpoints as a flat list, or false where a script has already sent 1 MB of them: the worker reads the rest.
local function readSteps(base, workflow, id)
  local steps = redis.call('HGETALL', keyOf(base, workflow, 'steps', id))
  for i = 2, #steps, 2 do STEPS_LEFT = STEPS_LEFT - #steps[i] end
  return STEPS_LEFT >= 0 and steps
end
