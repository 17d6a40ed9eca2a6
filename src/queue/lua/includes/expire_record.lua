--- @include key_of
--- @include trim_ended

--- The record of a completed or cancelled job goes after `ttl` ms, and its log with it.
local function expireRecord(base, workflow, id, state, ttl, now)
  redis.call('PEXPIRE', keyOf(base, workflow, 'j', id), ttl)
  redis.call('PEXPIRE', keyOf(base, workflow, 'log', id), ttl)
  redis.call('ZADD', keyOf(base, workflow, state), now + ttl, id)
  trimEnded(base, workflow, state, now)
end
