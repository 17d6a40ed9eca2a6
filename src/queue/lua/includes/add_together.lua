--- @include add_job when needed
--- @include arm_wake
--- @include emit_event
--- @include front_of
--- @include key_of

--- Add jobs of one workflow, at most 200, of different ids, that can run at once and have neither group nor expiry: each
--- as `addJob` does it, but with few commands for all where nobody has one of the ids.
--- `jobs`: { id, spec as text, data, unique, waiter, spec }*. Enters an answer a job into `answers`.
local function addTogether(base, workflow, jobs, now, answers)
  local keys, ids = {}, {}
  for i, job in ipairs(jobs) do
    keys[i], ids[i] = keyOf(base, workflow, 'j', job[1]), job[1]
  end
  if redis.call('EXISTS', unpack(keys)) > 0 then
    for _, job in ipairs(jobs) do
      answers[#answers + 1] = addJob(base, workflow, job[1], job[2], job[3], '', job[4], job[5], '', now)
    end
    return
  end
  -- of a record that has expired, the entry may still stand there
  local completed, cancelled = keyOf(base, workflow, 'completed'), keyOf(base, workflow, 'cancelled')
  if redis.call('EXISTS', completed, cancelled) > 0 then
    redis.call('ZREM', completed, unpack(ids))
    redis.call('ZREM', cancelled, unpack(ids))
  end
  local counter = redis.call('INCRBY', keyOf(base, workflow, 'pc'), #jobs) - #jobs
  local created, places = string.format('{"created":%.0f,', now), {}
  for i, job in ipairs(jobs) do
    local text = created .. string.sub(job[2], 2)
    if job[5] ~= '' then
      local role, process = string.match(job[5], '^(%a+) (.*)$')
      redis.call('HSET', keys[i], 'state', 'waiting', 'data', job[3], 'spec', text, role, process)
    else
      redis.call('HSET', keys[i], 'state', 'waiting', 'data', job[3], 'spec', text)
    end
    places[2 * i - 1], places[2 * i] = frontOf(job[6].priority) + counter + i, 'j:' .. job[1]
    emitEvent(base, workflow, 'added', job[1])
    answers[#answers + 1] = ''
  end
  redis.call('ZADD', keyOf(base, workflow, 'ready'), unpack(places))
  armWake(base, workflow)
end
