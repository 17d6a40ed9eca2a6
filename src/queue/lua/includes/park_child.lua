--- @include held_member
--- @include key_of

--- A child waits: for its own children or, `held` back, until fewer of its barrier run.
local function parkChild(base, above, aboveId, barrier, path, workflow, id, held, now)
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'state', 'parked')
  redis.call('ZADD', keyOf(base, workflow, 'parked'), now, id)
  if held then
    redis.call('ZADD', keyOf(base, above, 'held', aboveId), 0, heldMember(barrier, path, workflow .. ':' .. id))
  end
end
