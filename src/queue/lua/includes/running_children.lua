--- @include key_of
--- @include outstanding_children

--- How many children of a barrier have not ended and are not held back.
local function runningChildren(base, workflow, id, barrier)
  local held = redis.call('ZLEXCOUNT', keyOf(base, workflow, 'held', id), '[' .. barrier .. '\n', '(' .. barrier .. '\n\255')
  return outstandingChildren(base, workflow, id, barrier) - held
end
