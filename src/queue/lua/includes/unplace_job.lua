--- @include free_slot
--- @include key_of
--- @include maintain_group

--- Take a job that is in nobody's hands out of the structure that its state names, and give back a group it holds.
local function unplaceJob(base, workflow, id, spec, state, holds)
  if state == 'waiting' then
    if spec.group == '' or holds then
      redis.call('ZREM', keyOf(base, workflow, 'ready'), 'j:' .. id)
    else
      redis.call('ZREM', keyOf(base, workflow, 'g', spec.group), id)
      maintainGroup(base, workflow, spec.group)
    end
  else
    redis.call('ZREM', keyOf(base, workflow, state), id)
  end
  if holds then
    freeSlot(base, workflow, spec.group)
    maintainGroup(base, workflow, spec.group)
  end
  if spec.expires > 0 then redis.call('ZREM', keyOf(base, workflow, 'expiring'), id) end
end
