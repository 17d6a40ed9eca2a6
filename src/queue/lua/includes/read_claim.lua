--- @include key_of

--- The claim of an active job (see `enterActive`); false for any other.
local function readClaim(base, workflow, id)
  return redis.call('HGET', keyOf(base, workflow, 'active'), id)
end
