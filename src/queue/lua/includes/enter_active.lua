--- @include key_of
--- @include long
--- @include many

--- Jobs of a workflow have been claimed: they take a slot of it each and one of the namespace. `claims`: id and claim of
--- each; `leases`: deadline and `workflow:id` of each.
--- A claim is a mark (PLAIN, BESIDE or ELABORATE) and `token instant place`; but for elaborate ones also, where there are
--- any, the processes that wait for the end (a word each), and behind a line feed the group. Only where it is elaborate does
--- the record say that the job is active, and since when (see `stateOf`, `writeStart`).
local function enterActive(base, workflow, claims, leases)
  local slots, deadlines = keyOf(base, workflow, 'active'), keyOf(base, nil, 'active')
  if #leases < 2 * MANY then
    redis.call('HSET', slots, unpack(claims))
    redis.call('ZADD', deadlines, unpack(leases))
    return
  end
  redis.call('HSET', slots, LONG, '', unpack(claims))
  redis.call('HDEL', slots, LONG)
  redis.call('ZADD', deadlines, 0, LONG, unpack(leases))
  redis.call('ZREM', deadlines, LONG)
end
