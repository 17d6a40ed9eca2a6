--- @include first_instant
--- @include key_of
--- @include maintain_group
local READMITTED_AT_ONCE = 100
local READMITTED_LEFT = READMITTED_AT_ONCE

--- Let the groups whose budget is open again stand in line, a bounded batch a script.
--- Returns the instant at which to look again (0: there are more), or nil.
local function readmitGroups(base, workflow, now)
  local throttled, most = keyOf(base, workflow, 'throttled'), READMITTED_LEFT
  local due = redis.call('ZRANGEBYSCORE', throttled, '-inf', now, 'LIMIT', 0, most)
  READMITTED_LEFT = most - #due
  for _, group in ipairs(due) do
    redis.call('ZREM', throttled, group)
    maintainGroup(base, workflow, group)
  end
  if #due == most then return 0 end
  return firstInstant(base, workflow, 'throttled')
end
