--- @include key_of
--- @include read_parent
--- @include read_state

--- Does a job's parent keep its record after its end? It does from when it was started until the parent itself has ended
--- in a way that cannot be retried. `link`: the job's link to its parent, or nil.
local function parentKeeps(base, link, workflow, id)
  if not link then return false end
  local parent = readParent(link)
  local state = readState(base, parent.workflow, parent.id)
  if not state or state == 'completed' or state == 'cancelled' then return false end
  local children, member = keyOf(base, parent.workflow, 'children', parent.id), parent.path .. '\n' .. workflow .. ':' .. id
  return redis.call('ZSCORE', children, member) ~= false
end
