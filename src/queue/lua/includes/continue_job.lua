--- @include add_waiting
--- @include cascade_end
--- @include key_of
--- @include read_spec

--- A run goes on as a new one, in the same life: a new payload, no checkpoints, at the back of its priority. Events that
--- it has not taken stay. Its children go on without it; the round in its spec keeps theirs and the next ones' apart.
local function continueJob(base, workflow, id, text, data, kids)
  local job = keyOf(base, workflow, 'j', id)
  local round = readSpec(text).round + 1
  local spec = string.format('{"round":%d,', round) .. string.sub(string.gsub(text, '"round":%d+,', ''), 2)
  redis.call('UNLINK', keyOf(base, workflow, 'steps', id))
  if kids then
    cascadeEnd(base, workflow, id, 'held', 'cancel')
    redis.call('UNLINK', keyOf(base, workflow, 'barrier', id), keyOf(base, workflow, 'children', id))
  end
  redis.call('HSET', job, 'data', data, 'spec', spec)
  redis.call('HDEL', job, 'started', 'failures', 'failure', 'score', 'awaits', 'kids', 'news', 'progress')
  addWaiting(base, workflow, id, readSpec(spec))
end
