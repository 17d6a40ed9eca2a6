--- @include read_limits
--- @include running_jobs

--- How many slots under the namespace cap a workflow may take now: what is free, less one for each live workflow that
--- has been refused for longer. And when the first of these is over, if its workers ask no more. `refusals`: as
--- `liveRefusals` gives them.
local function fairShare(base, workflow, refusals)
  local cap = readLimits(base).concurrency
  local free = cap - runningJobs(base)
  if free <= 0 then return 0 end
  local till = nil
  for _, refusal in ipairs(refusals) do
    if refusal.workflow == workflow then break end
    free = free - 1
    till = math.min(till or refusal.till, refusal.till)
  end
  return math.max(free, 0), till
end
