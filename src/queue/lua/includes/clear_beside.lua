--- @include key_of

--- A job has completed, and its record stays for `ttl` ms: its steps and events go, its log stays for as long.
local function clearBeside(base, workflow, id, ttl)
  redis.call('UNLINK', keyOf(base, workflow, 'steps', id), keyOf(base, workflow, 'events', id))
  redis.call('PEXPIRE', keyOf(base, workflow, 'log', id), ttl)
end
