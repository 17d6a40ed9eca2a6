--- @include arm_wake
--- @include key_of
--- @include live_refusals
--- @include read_limits

--- Wake the workflows that the namespace cap has refused longest, one for each slot that is free now.
local function wakeCapped(base, now)
  local cap = readLimits(base).concurrency
  if cap == math.huge then return end
  local free = cap - redis.call('ZCARD', keyOf(base, nil, 'active'))
  if free <= 0 then return end
  for _, refusal in ipairs(liveRefusals(base, now)) do
    if free <= 0 then return end
    armWake(base, refusal.workflow)
    free = free - 1
  end
end
