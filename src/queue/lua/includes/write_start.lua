--- @include elaborate
--- @include key_of

--- Have the record of an active job, which is there, say what only its claim has said so far (see `enterActive`): that it
--- is, and since when.
local function writeStart(base, workflow, id, claim)
  if string.sub(claim, 1, 1) ~= ELABORATE then
    redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', 'active', 'started', string.match(claim, ' (%S+)'))
  end
end
