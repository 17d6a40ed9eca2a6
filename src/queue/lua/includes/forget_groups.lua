--- @include key_of

--- Jobs of groups were claimed that may have been their last: a group of which none waits is not among the `groups` any more.
--- `keys`: those of their waiting jobs.
local function forgetGroups(base, workflow, groups, keys)
  local gone = {}
  if not keys[1] or redis.call('EXISTS', unpack(keys)) == #keys then return end
  for i, group in ipairs(groups) do
    if redis.call('EXISTS', keys[i]) == 0 then gone[#gone + 1] = group end
  end
  redis.call('SREM', keyOf(base, workflow, 'groups'), unpack(gone))
end
