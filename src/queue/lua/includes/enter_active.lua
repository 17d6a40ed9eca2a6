--- @include key_of
local MANY = 16
-- of few short members Redis makes a list that it searches from its beginning; a longer one, which is no job's id, undoes
-- that for good
local LONG = string.rep('\n', 256)

--- Jobs of a workflow have been claimed: they take a slot of it each and one of the namespace. `ids`: their ids; `leases`:
--- deadline and `workflow:id` of each.
local function enterActive(base, workflow, ids, leases)
  local slots, deadlines, n = keyOf(base, workflow, 'active'), keyOf(base, nil, 'active'), #ids
  if n < MANY then
    redis.call('SADD', slots, unpack(ids))
    redis.call('ZADD', deadlines, unpack(leases))
    return
  end
  redis.call('SADD', slots, LONG, unpack(ids))
  redis.call('SREM', slots, LONG)
  redis.call('ZADD', deadlines, 0, LONG, unpack(leases))
  redis.call('ZREM', deadlines, LONG)
end
