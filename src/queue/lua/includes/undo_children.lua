--- @include end_job
--- @include forget_portion
--- @include is_parked_for
--- @include key_of
--- @include walk_on

--- Cancel some of the children that a job waits for which is to undo what it did; it waits for their ends. Returns how many.
local function undoChildren(base, name, workflow, id, limit, now)
  if not isParkedFor(base, workflow, id, '\t//undo') then
    forgetPortion(base, name)
    return 1
  end
  local page = walkOn(base, name, keyOf(base, workflow, 'barrier', id), limit)
  for _, member in ipairs(page) do
    local child, childId = string.match(member, '([^:\n]*):([^\n]*)$')
    endJob(base, child, childId, '', 'its parent has ended', now)
  end
  return #page
end
