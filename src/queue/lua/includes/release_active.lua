--- @include count_running
--- @include key_of

--- A claim is over: free its slots in the workflow and in the namespace.
local function releaseActive(base, workflow, id)
  if redis.call('HDEL', keyOf(base, workflow, 'active'), id) == 1 then countRunning(base, workflow, -1) end
end
