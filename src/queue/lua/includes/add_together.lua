--- @include add_job when needed
--- @include arm_wake
--- @include emit_event
--- @include front_of
--- @include key_of
--- @include maintain_group

--- Add jobs of one workflow, at most 200, of different ids, that can run at once and do not expire: each as `addJob`
--- does it, but with few commands for all where nobody has one of the ids.
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
  local created, singles, lines = string.format('{"created":%.0f,', now), {}, {}
  for i, job in ipairs(jobs) do
    local text = created .. string.sub(job[2], 2)
    if job[5] ~= '' then
      local role, process = string.match(job[5], '^(%a+) (.*)$')
      redis.call('HSET', keys[i], 'data', job[3], 'spec', text, role, process)
    else
      redis.call('HSET', keys[i], 'data', job[3], 'spec', text)
    end
    local spec = job[6]
    local line, member = singles, 'j:' .. job[1]
    if spec.group ~= '' then
      line, member = lines[spec.group] or {}, job[1]
      lines[spec.group] = line
    end
    local n = #line
    line[n + 1], line[n + 2] = frontOf(spec.priority) + counter + i, member
    emitEvent(base, workflow, 'added', job[1])
    answers[#answers + 1] = ''
  end
  if singles[1] then redis.call('ZADD', keyOf(base, workflow, 'ready'), unpack(singles)) end
  for group, line in pairs(lines) do
    redis.call('ZADD', keyOf(base, workflow, 'g', group), unpack(line))
    maintainGroup(base, workflow, group)
  end
  armWake(base, workflow)
end
