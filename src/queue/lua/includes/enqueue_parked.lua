--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include read_clock
--- @include read_spec

--- A parked job becomes runnable for the first time, and may expire from now on. One that is still being prepared to run
--- again does so after that.
local function enqueueParked(base, workflow, id)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'failures', 'awaits')
  if record[1] ~= 'parked' or string.find(record[4] or '', '^\t//again\t') then return end
  local spec = readSpec(record[2])
  redis.call('ZREM', keyOf(base, workflow, 'parked'), id)
  if spec.expires > 0 and not record[3] then
    redis.call('ZADD', keyOf(base, workflow, 'expiring'), readClock() + spec.expires, id)
  end
  addWaiting(base, workflow, id, spec)
  armWake(base, workflow)
end
