--- @include arm_wake
--- @include key_of
--- @include read_limits

--- Make `ready` and `groups` agree with a group's waiting jobs, its running ones, its cap and its budget, from which a job
--- that goes on with an attempt takes nothing.
--- The only writer of a group's membership in either, so neither can drift from the jobs themselves.
--- Returns the score at which the group stands in `ready`, or nil.
local function maintainGroup(base, workflow, group)
  local ready, groups = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'groups')
  local head = redis.call('ZRANGE', keyOf(base, workflow, 'g', group), 0, 0, 'WITHSCORES')
  local limits = readLimits(base, workflow)
  local limited = limits.limiters or readLimits(base).limiters
  if #head == 0 then
    if limited then redis.call('ZREM', keyOf(base, workflow, 'throttled'), group) end
    redis.call('SREM', groups, group)
    redis.call('ZREM', ready, 'g:' .. group)
    return nil
  end
  redis.call('SADD', groups, group)
  local throttled = limited and redis.call('ZSCORE', keyOf(base, workflow, 'throttled'), group)
  if throttled and redis.call('HEXISTS', keyOf(base, workflow, 'j', head[1]), 'started') == 1 then
    redis.call('ZREM', keyOf(base, workflow, 'throttled'), group)
    armWake(base, workflow)
    throttled = false
  end
  if not throttled and redis.call('SCARD', keyOf(base, workflow, 'ga', group)) < limits.group then
    redis.call('ZADD', ready, head[2], 'g:' .. group)
    return tonumber(head[2])
  end
  redis.call('ZREM', ready, 'g:' .. group)
  return nil
end
