--- @include key_of
--- @include line_up_group

--- A claim is over: free its slot in its group, if it has one.
local function releaseGroup(base, workflow, id, spec)
  if spec.group == '' then return end
  redis.call('SREM', keyOf(base, workflow, 'ga', spec.group), id)
  lineUpGroup(base, workflow, spec.group)
end
