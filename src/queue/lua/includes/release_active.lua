--- @include key_of
--- @include maintain_group

--- A claim is over: free its slot in the workflow, the namespace and (unless it keeps it) the group.
local function releaseActive(base, workflow, id, spec, holds)
  redis.call('SREM', keyOf(base, workflow, 'active'), id)
  redis.call('ZREM', keyOf(base, nil, 'active'), workflow .. ':' .. id)
  if spec.group ~= '' and not holds then
    redis.call('SREM', keyOf(base, workflow, 'ga', spec.group), id)
    maintainGroup(base, workflow, spec.group)
  end
end
