--- @include free_slot
--- @include line_up_group

--- A claim is over: free its slot in its group, if it has one.
local function releaseGroup(base, workflow, spec)
  if spec.group == '' then return end
  freeSlot(base, workflow, spec.group)
  lineUpGroup(base, workflow, spec.group)
end
