--- @include arm_wake
--- @include live_refusals
--- @include read_limits
--- @include running_jobs
local REFUSALS = nil

--- Wake the workflows that the namespace cap has refused longest, one for each slot that is free now. They are looked up
--- once a script: whoever gets something to claim after that is woken for it.
local function wakeCapped(base, now)
  local cap = readLimits(base).concurrency
  if cap == math.huge then return end
  local free = cap - runningJobs(base)
  if free <= 0 then return end
  REFUSALS = REFUSALS or liveRefusals(base, now)
  for _, refusal in ipairs(REFUSALS) do
    if free <= 0 then return end
    if not refusal.woken then armWake(base, refusal.workflow) end
    refusal.woken = true
    free = free - 1
  end
end
