--- @include read_claim

--- The state of a job by two fields of its record, or nil where there is none. A record without a state waits, which is
--- the first state of most jobs and, where they are many, the one they are in, so that it takes no room; or its first
--- attempt runs, and its claim says so (see `enterActive`). Behind that it has completed may stand when, and since when it
--- ran.
local function stateOf(base, workflow, id, state, spec)
  if state then return string.match(state, '^%S+') end
  return spec and (readClaim(base, workflow, id) and 'active' or 'waiting') or nil
end
