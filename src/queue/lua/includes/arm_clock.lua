--- @include key_of
local CLOCK_TTL = 60000

--- Leave one marker that has one worker of the workflow, be it idle or busy, look at its schedules and instants.
local function armClock(base, workflow)
  local clock = keyOf(base, workflow, 'clock')
  if redis.call('LLEN', clock) == 0 then
    redis.call('LPUSH', clock, '1')
    redis.call('PEXPIRE', clock, CLOCK_TTL)
  end
end
