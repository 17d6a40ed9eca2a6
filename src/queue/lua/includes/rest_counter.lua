--- @include key_of
local FAR = 2147483648

--- Start the FIFO counter over when nothing waits, nothing is claimed, and nothing sleeps, which would come back to its
--- place from before. A counter that has come far starts over although something sleeps.
local function restCounter(base, workflow)
  local counter, ready, groups = keyOf(base, workflow, 'pc'), keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'groups')
  local active = keyOf(base, workflow, 'active')
  if redis.call('EXISTS', ready, groups, active, keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'parked')) == 0
    or tonumber(redis.call('GET', counter) or '0') > FAR and redis.call('EXISTS', ready, groups, active) == 0 then
    redis.call('DEL', counter)
  end
end
