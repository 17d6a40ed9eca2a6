--- @include key_of

--- Lease a claim (see `enterActive`) until another instant.
local function leaseAgain(base, workflow, id, claim, deadline)
  local head, rest = string.match(claim, '^(%S+ %S+ )%S+(.*)$')
  redis.call('HSET', keyOf(base, workflow, 'active'), id, string.format('%s%d%s', head, deadline, rest))
end
