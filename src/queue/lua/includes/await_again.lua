--- @include key_of
--- @include outstanding_children
--- @include read_state

--- A child that had ended without success runs again. Its parent waits for it again where it cannot have gone on without
--- it: it has failed itself, or other children are still to end before it looks at any.
--- `parent`: as `readParent` gives it. Returns whether it does.
local function awaitAgain(base, workflow, id, parent)
  local above, aboveId = parent.workflow, parent.id
  local children, member = keyOf(base, above, 'children', aboveId), workflow .. ':' .. id
  if not redis.call('ZSCORE', children, parent.path .. '\n' .. member) then return false end
  local state = readState(base, above, aboveId)
  if not state or state == 'completed' or state == 'cancelled' then return false end
  local waits = parent.policy == 'continue' and outstandingChildren(base, above, aboveId, parent.barrier) > 0
  if state ~= 'failed' and (not waits or redis.call('HEXISTS', keyOf(base, above, 'steps', aboveId), '//undo') == 1) then
    return false
  end
  redis.call('ZADD', keyOf(base, above, 'barrier', aboveId), 0, parent.barrier .. '\n' .. member)
  redis.call('HDEL', keyOf(base, above, 'steps', aboveId), parent.path)
  return true
end
