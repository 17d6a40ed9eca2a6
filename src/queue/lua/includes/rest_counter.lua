--- @include key_of

--- Start the FIFO counter over when nothing waits and nothing is claimed.
local function restCounter(base, workflow)
  if redis.call('EXISTS', keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'groups'),
    keyOf(base, workflow, 'active')) == 0 then
    redis.call('DEL', keyOf(base, workflow, 'pc'))
  end
end
