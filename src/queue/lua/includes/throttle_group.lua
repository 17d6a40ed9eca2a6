--- @include key_of

--- A group's own budget is spent: it stands aside until an instant, so that it is at nobody's head.
local function throttleGroup(base, workflow, group, instant)
  redis.call('ZADD', keyOf(base, workflow, 'throttled'), instant, group)
  redis.call('ZREM', keyOf(base, workflow, 'ready'), 'g:' .. group)
end
