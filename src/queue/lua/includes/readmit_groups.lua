--- @include first_instant
--- @include key_of
--- @include maintain_group
local READMITTED_AT_ONCE = 100

--- Let the groups whose budget is open again stand in line. Returns the instant at which to look again (0: there are
--- more), or nil.
local function readmitGroups(base, workflow, now)
  local throttled = keyOf(base, workflow, 'throttled')
  local due = redis.call('ZRANGEBYSCORE', throttled, '-inf', now, 'LIMIT', 0, READMITTED_AT_ONCE)
  for _, group in ipairs(due) do
    redis.call('ZREM', throttled, group)
    maintainGroup(base, workflow, group)
  end
  if #due == READMITTED_AT_ONCE then return 0 end
  return firstInstant(base, workflow, 'throttled')
end
