--- @include key_of
--- @include release_leases

--- A claim is over: free its slots in the workflow and in the namespace.
local function releaseActive(base, workflow, id)
  redis.call('HDEL', keyOf(base, workflow, 'active'), id)
  releaseLeases(base, { [workflow] = { id } })
end
