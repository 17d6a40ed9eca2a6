--- A page of a workflow's jobs in one state.
--- keys: base
--- args: workflow, state, skip, limit
--- returns: ids
--- @include page_of_state
return pageOfState(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]))
