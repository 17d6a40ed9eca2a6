--- @include arm_wake
--- @include key_of
--- @include rest_counter
--- @include wake_capped

--- Something of a workflow was taken out of the way (a claim, or what stood in front) by nobody who claims in its stead:
--- whoever can use that is woken.
local function passOn(base, workflow, now)
  if redis.call('EXISTS', keyOf(base, workflow, 'ready')) == 1 then
    armWake(base, workflow)
  else
    restCounter(base, workflow)
  end
  wakeCapped(base, now)
end
