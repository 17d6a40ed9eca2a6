--- @include key_of
local TRIMMED_LEFT = 2000
local TRIMMED_AT_ONCE = 500

--- Forget the jobs of a workflow that have ended in a state (completed | cancelled) and whose records have expired, a
--- bounded batch, of all of them in a script no more than four.
local function trimEnded(base, workflow, state, now)
  local ended = keyOf(base, workflow, state)
  local expired = redis.call('ZCOUNT', ended, '-inf', now)
  local most = math.min(expired, TRIMMED_AT_ONCE, TRIMMED_LEFT)
  if most > 0 then redis.call('ZREMRANGEBYRANK', ended, 0, most - 1) end
  TRIMMED_LEFT = TRIMMED_LEFT - most
end
