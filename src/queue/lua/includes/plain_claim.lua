--- @include beside
--- @include elaborate
--- @include plain

--- The claim (see `enterActive`) of a job that was never started, and whether it is elaborate. `head`: its token, the
--- instant and the deadline, a space behind each; `options`: whether there may be any in its spec.
local function plainClaim(head, place, spec, options, waiters, parent, group)
  if parent or options and string.find(spec, '"result_ttl":', 1, true) then return ELABORATE .. head .. place, true end
  -- of an earlier round of the same life there may be a log, and events (see `beginAnew`)
  local mark = options and string.sub(spec, 1, 9) == '{"round":' and BESIDE or PLAIN
  if not (waiters or group) then return mark .. head .. place, false end
  local claim = mark .. head .. place .. ' ' .. (waiters or '')
  return group and claim .. '\n' .. group or claim, false
end
