--- @include count_running
--- @include key_of
--- @include long
--- @include many

--- Jobs of a workflow have been claimed: they take a slot of it each and one of the namespace. `claims`: id and claim of
--- each.
--- A claim is a mark (PLAIN, BESIDE or ELABORATE) and `token instant deadline place`, of which the deadline is that of its
--- lease; but for elaborate ones also, where there are any, the processes that wait for the end (a word each), and behind a
--- line feed the group. Only where it is elaborate does the record say that the job is active, and since when (see
--- `stateOf`, `writeStart`).
local function enterActive(base, workflow, claims)
  local active = keyOf(base, workflow, 'active')
  if #claims < 2 * MANY then
    redis.call('HSET', active, unpack(claims))
  else
    redis.call('HSET', active, LONG, '', unpack(claims))
    redis.call('HDEL', active, LONG)
  end
  countRunning(base, workflow, #claims / 2)
end
