--- @include publish_end
--- @include retain_ended
--- @include settle_child

--- The job has completed with a result. `told`: as `readTold` gives it.
local function finalizeCompleted(base, workflow, id, spec, result, now, told)
  local kept = retainEnded(base, workflow, id, spec, 'completed', 'result', result, now, told)
  publishEnd(base, workflow, id, spec, 'completed', result, kept, told)
  if told[3] then settleChild(base, workflow, id, told[3], 'completed', result, now) end
end
