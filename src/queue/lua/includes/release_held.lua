--- @include enqueue_parked
--- @include key_of
--- @include running_children

--- Let children of a barrier run that are held back, as far as it has room: `most` may run at once.
local function releaseHeld(base, workflow, id, barrier, most)
  local held = keyOf(base, workflow, 'held', id)
  local from, to = '[' .. barrier .. '\n', '(' .. barrier .. '\n\255'
  while runningChildren(base, workflow, id, barrier) < most do
    local next = redis.call('ZRANGEBYLEX', held, from, to, 'LIMIT', 0, 1)[1]
    if not next then return end
    redis.call('ZREM', held, next)
    enqueueParked(base, string.match(next, '([^:\n]*):([^\n]*)$'))
  end
end
