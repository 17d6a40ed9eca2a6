--- @include drop_failed
--- @include key_of
local TRIMMED_AT_ONCE = 10
local TRIMMED_LEFT = 300

--- Drop the oldest failed jobs beyond `count` (-1: no bound) and those older than `age` ms (0: no bound). Returns whether
--- some were dropped that would be kept if fewer had failed.
local function trimFailed(base, workflow, count, age, now)
  local failed, most = keyOf(base, workflow, 'failed'), math.min(TRIMMED_AT_ONCE, TRIMMED_LEFT)
  local surplus = count >= 0 and redis.call('ZCARD', failed) - count or 0
  local dropped = {}
  if most == 0 then return false end
  if surplus > 0 then
    dropped = redis.call('ZRANGE', failed, 0, math.min(surplus, most) - 1)
  elseif age > 0 then
    dropped = redis.call('ZRANGEBYSCORE', failed, '-inf', now - age, 'LIMIT', 0, most)
  end
  TRIMMED_LEFT = TRIMMED_LEFT - #dropped
  for _, id in ipairs(dropped) do dropFailed(base, workflow, id, count == 0) end
  return count > 0 and surplus > 0
end
