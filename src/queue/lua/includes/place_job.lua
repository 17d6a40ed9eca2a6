--- @include front_of
--- @include key_of
--- @include maintain_group

--- Give a runnable job its place: by itself in `ready`, or among its group's waiting jobs.
--- `score` is the place it had before, or nil for the back of its priority. A place from before the counter last started
--- over means the front of the priority. A job that still holds its group's slot does not wait for the group again.
local function placeJob(base, workflow, id, spec, score, holds)
  local front, counter = frontOf(spec.priority), keyOf(base, workflow, 'pc')
  if score then
    if score - front > tonumber(redis.call('GET', counter) or '0') then score = front end
  else
    score = front + redis.call('INCR', counter)
  end
  if spec.group == '' or holds then
    redis.call('ZADD', keyOf(base, workflow, 'ready'), score, 'j:' .. id)
  else
    redis.call('ZADD', keyOf(base, workflow, 'g', spec.group), score, id)
    maintainGroup(base, workflow, spec.group)
  end
end
