--- An entry of a limiter's starts (none: nil): its instant, and how many starts had been told before it, and with it. One
--- that cannot be read is never over, and leaves no room for others.
local function readStarts(entry)
  if not entry then return nil end
  local instant, before, told = string.match(entry, '^(%d+) (%d+) (%d+)$')
  if not instant then return math.huge, -math.huge, math.huge end
  return tonumber(instant), tonumber(before), tonumber(told)
end
