--- @include key_of

--- How many jobs of all workflows are claimed.
local function runningJobs(base)
  local sum = 0
  for _, number in ipairs(redis.call('HVALS', keyOf(base, nil, 'running'))) do sum = sum + number end
  return sum
end
