--- @include elaborate
--- @include plain

--- The claim (see `enterActive`) of a job that was never started.
local function plainClaim(token, place, spec, waiters, parent, group)
  local claim = token .. ' ' .. place
  if parent or string.find(spec, '"result_ttl":', 1, true) then return ELABORATE .. claim end
  if not (waiters or group) then return PLAIN .. claim end
  claim = PLAIN .. claim .. ' ' .. (waiters or '')
  return group and claim .. '\n' .. group or claim
end
