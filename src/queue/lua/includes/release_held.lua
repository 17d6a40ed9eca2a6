--- @include enqueue_parked
--- @include key_of

--- A child of a barrier with bounded concurrency has ended: the next one that is held back may run.
local function releaseHeld(base, workflow, id, barrier)
  local held = keyOf(base, workflow, 'held', id)
  local from, to = '[' .. barrier .. '\n', '(' .. barrier .. '\n\255'
  while true do
    local next = redis.call('ZRANGEBYLEX', held, from, to, 'LIMIT', 0, 1)[1]
    if not next then return end
    redis.call('ZREM', held, next)
    local child, childId = string.match(next, '([^:\n]*):([^\n]*)$')
    if enqueueParked(base, child, childId) then return end
  end
end
