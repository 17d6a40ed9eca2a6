--- @include publish_end
--- @include retain_ended

--- The job has completed with a result.
local function finalizeCompleted(base, workflow, id, spec, result, now, waiters, watchers)
  local kept = retainEnded(base, workflow, id, spec, 'completed', 'result', result, now)
  publishEnd(base, workflow, id, spec, 'completed', result, waiters, kept, watchers)
end
