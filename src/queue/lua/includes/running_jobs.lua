--- @include key_of
--- @include running_total

--- How many jobs of all workflows are claimed.
local function runningJobs(base)
  local sum = RUNNING_TOTAL.is
  if not sum then
    sum = 0
    for _, number in ipairs(redis.call('HVALS', keyOf(base, nil, 'running'))) do sum = sum + number end
    RUNNING_TOTAL.is = sum
  end
  return sum
end
