--- @include add_job when needed
--- @include arm_wake
--- @include emit_event
--- @include forget_ended
--- @include front_of
--- @include key_of
--- @include maintain_group
--- @include read_limits
--- @include spec_text

--- Add jobs of one workflow, at most 200, of different ids, that can run at once and do not expire: each as `addJob`
--- does it, but with few commands for all where nobody has one of the ids.
--- `jobs`: lists of their `ids`, `nonces` and `data`, and what they share with others (`like`: rest of the spec, unique,
--- waiter, spec). Enters an answer a job into `answers`.
local function addTogether(base, workflow, jobs, now, answers)
  local ids, nonces, data, like, keys, named = jobs.ids, jobs.nonces, jobs.data, jobs.like, {}, {}
  local key = keyOf(base, workflow, 'j', '')
  for i, id in ipairs(ids) do
    keys[i] = key .. id
    if like[i][2] ~= 'fresh' then named[#named + 1] = id end
  end
  if redis.call('EXISTS', unpack(keys)) > 0 then
    for i, id in ipairs(ids) do
      local rest, unique, waiter = unpack(like[i])
      answers[#answers + 1] =
        addJob(base, workflow, id, specText(nonces[i], rest), data[i], '', unique, waiter, '', now)
    end
    return
  end
  if named[1] then forgetEnded(base, workflow, unpack(named)) end
  local counter = redis.call('INCRBY', keyOf(base, workflow, 'pc'), #ids) - #ids
  local created, singles, lines = string.format('{"created":%d,"run":"', now), {}, {}
  local emits = readLimits(base, workflow).stream > 0
  for i, id in ipairs(ids) do
    local rest, _, waiter, spec = unpack(like[i])
    local text = created .. nonces[i] .. '"' .. rest
    if waiter ~= '' then
      local role, process = string.match(waiter, '^(%a+) (.*)$')
      redis.call('HSET', keys[i], 'data', data[i], 'spec', text, role, process)
    else
      redis.call('HSET', keys[i], 'data', data[i], 'spec', text)
    end
    local line, member = singles, 'j:' .. id
    if spec.group ~= '' then
      line, member = lines[spec.group] or {}, id
      lines[spec.group] = line
    end
    local n = #line
    line[n + 1], line[n + 2] = frontOf(spec.priority) + counter + i, member
    if emits then emitEvent(base, workflow, 'added', id) end
    answers[#answers + 1] = ''
  end
  if singles[1] then redis.call('ZADD', keyOf(base, workflow, 'ready'), unpack(singles)) end
  for group, line in pairs(lines) do
    redis.call('ZADD', keyOf(base, workflow, 'g', group), unpack(line))
    maintainGroup(base, workflow, group)
  end
  armWake(base, workflow)
end
