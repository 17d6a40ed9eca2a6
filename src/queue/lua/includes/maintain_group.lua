--- @include key_of
--- @include line_up_group

--- Make `ready` and `groups` agree with a group's waiting jobs, of which some have come or gone, so that neither can drift
--- from the jobs themselves. Returns the score at which the group stands in `ready`, or nil.
local function maintainGroup(base, workflow, group)
  local place, waits = lineUpGroup(base, workflow, group)
  redis.call(waits and 'SADD' or 'SREM', keyOf(base, workflow, 'groups'), group)
  return place
end
