--- @include clear_beside
--- @include key_of

--- A job that has no parent and no children has completed: its record stays for `ttl` ms. What is left to do for it is
--- for `enterCompleted`, by its entry in `ended`.
local function completeJob(base, workflow, id, result, ttl, now, ended)
  local job = keyOf(base, workflow, 'j', id)
  redis.call('HSET', job, 'state', 'completed', 'result', result, 'finished', now)
  redis.call('PEXPIRE', job, ttl)
  clearBeside(base, workflow, id, ttl)
  local entries = ended[workflow]
  if entries then
    local n = #entries
    entries[n + 1], entries[n + 2] = now + ttl, id
  else
    ended[workflow] = { now + ttl, id }
  end
end
