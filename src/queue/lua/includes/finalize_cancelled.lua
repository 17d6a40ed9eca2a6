--- @include publish_end
--- @include retain_ended

--- The job has been cancelled, for a reason.
local function finalizeCancelled(base, workflow, id, spec, reason, now, waiters, watchers)
  local kept = retainEnded(base, workflow, id, spec, 'cancelled', 'reason', reason, now)
  publishEnd(base, workflow, id, spec, 'cancelled', reason, waiters, kept, watchers)
end
