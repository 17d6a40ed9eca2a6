--- @include key_of

--- Claims that their workflows have released are over: free their slots in the namespace. `claims`: ids by workflow, at
--- most 1,000.
local function releaseLeases(base, claims)
  local members = {}
  for workflow, ids in pairs(claims) do
    for _, id in ipairs(ids) do members[#members + 1] = workflow .. ':' .. id end
  end
  if #members > 0 then redis.call('ZREM', keyOf(base, nil, 'active'), unpack(members)) end
end
