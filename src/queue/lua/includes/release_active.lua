--- @include key_of

--- A claim is over: free its slots in the workflow and in the namespace.
local function releaseActive(base, workflow, id)
  redis.call('HDEL', keyOf(base, workflow, 'active'), id)
  redis.call('ZREM', keyOf(base, nil, 'active'), workflow .. ':' .. id)
end
