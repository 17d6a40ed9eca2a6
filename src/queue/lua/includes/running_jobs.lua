--- @include key_of
--- @include running_total

--- How many jobs of all workflows are claimed.
local function runningJobs(base)
  if not RUNNING.total then
    RUNNING.total = 0
    for _, number in ipairs(redis.call('HVALS', keyOf(base, nil, 'running'))) do RUNNING.total = RUNNING.total + number end
  end
  return RUNNING.total
end
