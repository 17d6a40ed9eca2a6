--- @include fail_record
--- @include settle_child

--- The job has failed for good. `told`: as `readTold` gives it. Returns what `failRecord` does.
local function finalizeFailed(base, workflow, id, spec, failure, now, told)
  local crowded = failRecord(base, workflow, id, spec, failure, now, told)
  if told[3] then settleChild(base, workflow, id, told[3], 'failed', failure, now) end
  return crowded
end
