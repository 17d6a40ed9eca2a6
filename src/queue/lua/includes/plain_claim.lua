--- @include beside
--- @include elaborate
--- @include plain

--- The claim (see `enterActive`) of a job that was never started.
local function plainClaim(token, place, spec, waiters, parent, group)
  local claim = token .. ' ' .. place
  if parent or string.find(spec, '"result_ttl":', 1, true) then return ELABORATE .. claim end
  -- of an earlier round of the same life there may be a log, and events (see `beginAnew`)
  claim = (string.sub(spec, 1, 9) == '{"round":' and BESIDE or PLAIN) .. claim
  if not (waiters or group) then return claim end
  claim = claim .. ' ' .. (waiters or '')
  return group and claim .. '\n' .. group or claim
end
