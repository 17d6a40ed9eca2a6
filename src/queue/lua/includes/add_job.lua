--- @include add_delayed when needed
--- @include arm_clock when needed
--- @include dedup_job when needed
--- @include emit_event
--- @include enqueue_now
--- @include erase_job when needed
--- @include forget_ended
--- @include key_of
--- @include open_window when needed
--- @include read_spec
--- @include state_of

--- Add one job. `at`: empty for now, `+ms` from now, an instant, or `parked` (it waits for children). `unique`: live |
--- retained | fresh (its id was made up: nobody has had it). `waiter`: empty, or a process that waits for the end, or
--- watches, from the start (`waiters process` | `watchers process`). `dedup`: empty, or `throttle ms key` |
--- `debounce ms key`. An ended job of the id is replaced where `unique` allows it: what is left of that life is erased
--- first.
--- Returns '' when added (or when it was added by this very call before), else nonce, state and id of the job that stands
--- in its place.
local function addJob(base, workflow, id, text, data, at, unique, waiter, dedup, now)
  local job = keyOf(base, workflow, 'j', id)
  if dedup ~= '' then
    local instead = dedupJob(base, workflow, data, dedup, now)
    if instead then return instead end
    local delay = string.match(dedup, '^debounce (%d+)')
    if delay then at = '+' .. delay end
  end
  local existing = redis.call('HMGET', job, 'state', 'spec', 'kids')
  local spec = readSpec(text)
  local state = stateOf(base, workflow, id, existing[1], existing[2])
  if state then
    local run = readSpec(existing[2]).run
    if run == spec.run then return '' end
    if (state ~= 'completed' and state ~= 'cancelled') or unique == 'retained' then
      return table.concat({ run, state, id }, ' ')
    end
    redis.call('ZREM', keyOf(base, workflow, state), id)
    eraseJob(base, workflow, id, existing[3])
  elseif unique ~= 'fresh' then
    forgetEnded(base, workflow, id)
  end
  if dedup ~= '' then openWindow(base, workflow, id, spec.run, dedup) end
  text = string.format('{"created":%d,', now) .. string.sub(text, 2)
  local role, process = string.match(waiter, '^(%a+) (.*)$')
  if role then redis.call('HSET', job, role, process) end
  local instant = string.sub(at, 1, 1) == '+' and now + tonumber(at) or tonumber(at)
  if spec.expires > 0 and at ~= 'parked' then
    local expiring = keyOf(base, workflow, 'expiring')
    redis.call('ZADD', expiring, math.max(instant or now, now) + spec.expires, id)
    if redis.call('ZRANGE', expiring, 0, 0)[1] == id then armClock(base, workflow) end
  end
  if at == 'parked' then
    redis.call('HSET', job, 'state', 'parked', 'data', data, 'spec', text)
    redis.call('ZADD', keyOf(base, workflow, 'parked'), now, id)
  elseif instant and instant > now then
    redis.call('HSET', job, 'data', data, 'spec', text)
    addDelayed(base, workflow, id, instant)
  else
    enqueueNow(base, workflow, id, spec, text, data)
  end
  emitEvent(base, workflow, 'added', id)
  return ''
end
