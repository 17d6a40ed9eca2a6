--- @include key_of
--- @include read_claim

--- The claim of a job, if it is active, says from now on who waits for its end (a word each).
local function tellClaim(base, workflow, id, waiters)
  local head, group = string.match(readClaim(base, workflow, id) or '', '^(%S+ %S+ %S+ %S+)[^\n]*(.*)$')
  if head then redis.call('HSET', keyOf(base, workflow, 'active'), id, head .. ' ' .. waiters .. group) end
end
