--- @include drop_failed
--- @include key_of
local TRIMMED_AT_ONCE = 10

--- Drop the oldest failed jobs beyond `count` (-1: no bound) and those older than `age` ms (0: no bound).
local function trimFailed(base, workflow, count, age, now)
  local failed = keyOf(base, workflow, 'failed')
  local surplus = count >= 0 and redis.call('ZCARD', failed) - count or 0
  local dropped = {}
  if surplus > 0 then
    dropped = redis.call('ZRANGE', failed, 0, math.min(surplus, TRIMMED_AT_ONCE) - 1)
  elseif age > 0 then
    dropped = redis.call('ZRANGEBYSCORE', failed, '-inf', now - age, 'LIMIT', 0, TRIMMED_AT_ONCE)
  end
  for _, id in ipairs(dropped) do dropFailed(base, workflow, id, count == 0) end
end
