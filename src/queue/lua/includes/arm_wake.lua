--- @include key_of
local WAKE_TTL = 60000

--- Leave one marker that wakes one idle worker of the workflow.
local function armWake(base, workflow)
  local wake = keyOf(base, workflow, 'wake')
  if redis.call('LLEN', wake) == 0 then
    redis.call('LPUSH', wake, '1')
    redis.call('PEXPIRE', wake, WAKE_TTL)
  end
end
