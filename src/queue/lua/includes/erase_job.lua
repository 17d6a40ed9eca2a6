--- @include key_of

--- Delete everything of a job that is in nobody's hands: record, steps, events, log.
local function eraseJob(base, workflow, id)
  redis.call('UNLINK', keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id),
    keyOf(base, workflow, 'events', id), keyOf(base, workflow, 'log', id))
end
