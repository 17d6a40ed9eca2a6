--- Enter a claim of a first attempt, whose job has no checkpoints, into what a worker gets (see `settle`).
local function enterFirst(claims, index, id, data, spec)
  local n = #claims
  -- said once for all that follow
  if claims.index ~= index then
    n, claims.index = n + 1, index
    claims[n] = index
  end
  claims[n + 1], claims[n + 2], claims[n + 3] = id, data, spec
end
