--- @include arm_wake
--- @include key_of
--- @include put_off
--- @include read_clock

--- A job with children is to run again: it is parked until what has to be done before is done, portion by portion, as
--- `how` (anew | again) and `about` say; nothing else wakes it.
local function parkAgain(base, workflow, id, how, about)
  local _, stamp = putOff(base, how, about, workflow, id)
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', 'parked', 'awaits', '\t//again\t' .. stamp)
  redis.call('ZADD', keyOf(base, workflow, 'parked'), readClock(), id)
  armWake(base, workflow)
end
