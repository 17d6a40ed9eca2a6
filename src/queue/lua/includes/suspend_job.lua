--- @include add_delayed
--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include waiting_event

--- Put a job to sleep until an instant (nil: none), or until one of the named events (a line each; a name after a tab is
--- that of a barrier of children). What arrived before this is not missed, nor an instant that has passed: the job is
--- runnable again at once.
local function suspendJob(base, workflow, id, spec, place, holds, names, instant, now)
  local job = keyOf(base, workflow, 'j', id)
  local news = redis.call('HDEL', job, 'news') == 1
  if news or (instant and instant <= now) or (names ~= '' and waitingEvent(base, workflow, id, names)) then
    addWaiting(base, workflow, id, spec, place, holds)
    armWake(base, workflow)
    return
  end
  if names ~= '' then redis.call('HSET', job, 'awaits', names) end
  if instant then
    addDelayed(base, workflow, id, instant)
  else
    redis.call('HSET', job, 'state', 'parked')
    redis.call('ZADD', keyOf(base, workflow, 'parked'), now, id)
  end
end
