--- @include add_waiting
--- @include arm_wake
--- @include key_of
--- @include put_off
--- @include read_clock

--- A job that has registered compensations (`known` of them, or as its checkpoint says) is about to end as failed or
--- cancelled: it runs once more to undo, and ends after that. What it started is cancelled with it, and has ended before
--- it undoes.
--- `how`: failed | cancelled; `text`: failure or reason.
--- Returns whether it does; false where there is nothing to undo, or that has been done.
local function beginUndo(base, workflow, id, spec, place, how, text, known)
  local job, steps = keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id)
  if redis.call('HEXISTS', steps, '//undo') == 1 then return false end
  if known then
    redis.call('HSET', steps, '//undos', known)
  elseif redis.call('HEXISTS', steps, '//undos') == 0 then
    return false
  end
  local failures = redis.call('HGET', job, 'failures') or '0'
  redis.call('HSET', steps, '//undo', how .. ':' .. failures .. ':' .. text)
  redis.call('HDEL', job, 'cancel', 'awaits', 'stalls', 'holds')
  if place then redis.call('HSET', job, 'score', place) end
  if how == 'cancelled' and redis.call('EXISTS', keyOf(base, workflow, 'barrier', id)) == 1 then
    putOff(base, 'undo', '', workflow, id)
    redis.call('HSET', job, 'state', 'parked', 'awaits', '\t//undo')
    redis.call('ZADD', keyOf(base, workflow, 'parked'), readClock(), id)
    return true
  end
  addWaiting(base, workflow, id, spec, place)
  armWake(base, workflow)
  return true
end
