--- @include key_of
--- @include maintain_group

--- A claim is over: free its slot in its group, if it has one.
local function releaseGroup(base, workflow, id, spec)
  if spec.group == '' then return end
  redis.call('SREM', keyOf(base, workflow, 'ga', spec.group), id)
  maintainGroup(base, workflow, spec.group)
end
