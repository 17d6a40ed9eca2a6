--- @include key_of
local OUTLASTS = 604800000

--- Note when a failed job will have been kept for as long as it is to be. Where nobody sweeps for long after that, the
--- note goes by itself.
local function noteOutdating(base, workflow, id, now, age)
  local outdating = keyOf(base, workflow, 'outdating')
  redis.call('ZADD', outdating, now + age, id)
  redis.call('PEXPIRE', outdating, math.max(redis.call('PTTL', outdating), age + OUTLASTS))
end
