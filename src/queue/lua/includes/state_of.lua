--- The state of a job by two fields of its record, or nil where there is none. A record without a state waits: it is
--- the first state of most jobs and, where they are many, the one they are in, so it is the one that takes no room.
local function stateOf(state, spec)
  return state or spec and 'waiting' or nil
end
