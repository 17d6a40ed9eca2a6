--- @include cascade_end
--- @include key_of

--- Delete everything of a job that is in nobody's hands: record, steps, events, log, and (`kids`) what it knows of its
--- children. Those that it holds back are cancelled; the records of the others are not kept by it any more.
local function eraseJob(base, workflow, id, kids)
  redis.call('UNLINK', keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id),
    keyOf(base, workflow, 'events', id), keyOf(base, workflow, 'log', id))
  if kids then
    cascadeEnd(base, workflow, id, 'held', 'cancel')
    cascadeEnd(base, workflow, id, 'children', 'release')
    redis.call('UNLINK', keyOf(base, workflow, 'barrier', id), keyOf(base, workflow, 'children', id))
  end
end
