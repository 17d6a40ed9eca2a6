--- @include arm_wake
--- @include key_of
--- @include read_limits
--- @include slots_of

--- Have a group stand in `ready`, with its head's place, as long as jobs of it wait and its running ones, its cap and its
--- budget (from which a job that goes on with an attempt takes nothing) allow one more.
--- The only one to enter a group there. Returns the score at which it stands, or nil, and whether jobs of it wait.
local function lineUpGroup(base, workflow, group)
  local ready = keyOf(base, workflow, 'ready')
  local head = redis.call('ZRANGE', keyOf(base, workflow, 'g', group), 0, 0, 'WITHSCORES')
  local limits = readLimits(base, workflow)
  local limited = limits.limiters or readLimits(base).limiters
  if #head == 0 then
    if limited then redis.call('ZREM', keyOf(base, workflow, 'throttled'), group) end
    redis.call('ZREM', ready, 'g:' .. group)
    return nil, false
  end
  local throttled = limited and redis.call('ZSCORE', keyOf(base, workflow, 'throttled'), group)
  if throttled and redis.call('HEXISTS', keyOf(base, workflow, 'j', head[1]), 'started') == 1 then
    redis.call('ZREM', keyOf(base, workflow, 'throttled'), group)
    armWake(base, workflow)
    throttled = false
  end
  if not throttled and slotsOf(base, workflow, group) < limits.group then
    redis.call('ZADD', ready, head[2], 'g:' .. group)
    return tonumber(head[2]), true
  end
  redis.call('ZREM', ready, 'g:' .. group)
  return nil, true
end
