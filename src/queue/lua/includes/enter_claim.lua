--- Enter a claim, with the failed attempts and the checkpoints of its job, into what a worker gets (see `settle`).
local function enterClaim(claims, index, id, data, spec, failures, steps)
  local n = #claims
  claims[n + 1], claims[n + 2], claims[n + 3], claims[n + 4], claims[n + 5], claims[n + 6] =
    -index, id, data, spec, failures, steps
  claims.index = nil
end
