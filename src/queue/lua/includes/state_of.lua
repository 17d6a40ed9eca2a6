--- @include read_claim

--- The state of a job by two fields of its record, or nil where there is none. A record without a state waits, which is
--- the first state of most jobs and, where they are many, the one they are in, so that it takes no room; or its first
--- attempt runs, and its claim says so (see `enterActive`).
local function stateOf(base, workflow, id, state, spec)
  return state or spec and (readClaim(base, workflow, id) and 'active' or 'waiting') or nil
end
