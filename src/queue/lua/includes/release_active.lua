--- @include key_of

--- Claims are over: free their slots in their workflows and in the namespace. `claims`: ids by workflow, at most 1,000.
local function releaseActive(base, claims)
  local members = {}
  for workflow, ids in pairs(claims) do
    redis.call('SREM', keyOf(base, workflow, 'active'), unpack(ids))
    for _, id in ipairs(ids) do members[#members + 1] = workflow .. ':' .. id end
  end
  if #members > 0 then redis.call('ZREM', keyOf(base, nil, 'active'), unpack(members)) end
end
