--- @include first_event

--- Has one of the named events (a line each) arrived for the job, and not been taken?
local function waitingEvent(base, workflow, id, names)
  for name in string.gmatch(names, '[^\n]+') do
    if firstEvent(base, workflow, id, name) then return true end
  end
  return false
end
