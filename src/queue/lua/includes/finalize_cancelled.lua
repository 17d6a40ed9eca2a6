--- @include cascade_end
--- @include publish_end
--- @include retain_ended
--- @include settle_child

--- The job has been cancelled, for a reason; what it started is cancelled with it. `told`: as `readTold` gives it.
local function finalizeCancelled(base, workflow, id, spec, reason, now, told)
  if told[4] then cascadeEnd(base, workflow, id, 'barrier', 'cancel') end
  local kept = retainEnded(base, workflow, id, spec, 'cancelled', 'reason', reason, now, told)
  publishEnd(base, workflow, id, spec, 'cancelled', reason, kept, told)
  if told[3] then settleChild(base, workflow, id, told[3], 'cancelled', reason, now) end
end
