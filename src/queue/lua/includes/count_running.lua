--- @include key_of
--- @include running_total

--- So many more jobs of a workflow (where it is negative: fewer) are claimed.
local function countRunning(base, workflow, more)
  local running = keyOf(base, nil, 'running')
  if redis.call('HINCRBY', running, workflow, more) == 0 then redis.call('HDEL', running, workflow) end
  if RUNNING_TOTAL.is then RUNNING_TOTAL.is = RUNNING_TOTAL.is + more end
end
