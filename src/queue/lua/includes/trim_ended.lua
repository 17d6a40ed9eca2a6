--- @include key_of
local TRIMMED_A_STATE = 500

--- Forget the completed and cancelled jobs of a workflow whose records have expired, a bounded batch.
local function trimEnded(base, workflow, now)
  for _, state in ipairs({ 'completed', 'cancelled' }) do
    local ended = keyOf(base, workflow, state)
    local expired = redis.call('ZCOUNT', ended, '-inf', now)
    if expired > 0 then redis.call('ZREMRANGEBYRANK', ended, 0, math.min(expired, TRIMMED_A_STATE) - 1) end
  end
end
