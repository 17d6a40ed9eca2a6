--- An entry of a limiter's starts (none: nil): its instant, and how many starts had been told before it, and with it.
local function readStarts(entry)
  if not entry then return nil end
  local instant, before, told = string.match(entry, '^(%d+) (%d+) (%d+)$')
  return tonumber(instant), tonumber(before), tonumber(told)
end
