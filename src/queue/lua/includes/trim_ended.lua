--- @include key_of
local TRIMMED_AT_ONCE = 500

--- Forget the jobs of a workflow that have ended in a state (completed | cancelled) and whose records have expired, a
--- bounded batch.
local function trimEnded(base, workflow, state, now)
  local ended = keyOf(base, workflow, state)
  local expired = redis.call('ZCOUNT', ended, '-inf', now)
  if expired > 0 then redis.call('ZREMRANGEBYRANK', ended, 0, math.min(expired, TRIMMED_AT_ONCE) - 1) end
end
