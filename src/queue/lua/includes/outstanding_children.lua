--- @include key_of

--- How many children a barrier of a job still waits for.
local function outstandingChildren(base, workflow, id, barrier)
  return redis.call('ZLEXCOUNT', keyOf(base, workflow, 'barrier', id), '[' .. barrier .. '\n', '(' .. barrier .. '\n\255')
end
