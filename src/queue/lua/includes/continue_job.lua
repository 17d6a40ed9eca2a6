--- @include add_waiting
--- @include begin_anew
--- @include key_of
--- @include park_again
--- @include read_spec

--- A run goes on as a new one, in the same life: a new payload, no checkpoints, at the back of its priority. Events that
--- it has not taken stay. `text`: its spec.
local function continueJob(base, workflow, id, text, data, kids)
  local job = keyOf(base, workflow, 'j', id)
  local spec = beginAnew(base, workflow, id, text, kids)
  redis.call('HSET', job, 'data', data)
  redis.call('HDEL', job, 'started', 'failures', 'failure', 'score', 'awaits', 'news', 'progress')
  if kids then
    parkAgain(base, workflow, id, 'anew', '')
  else
    addWaiting(base, workflow, id, readSpec(spec))
  end
end
