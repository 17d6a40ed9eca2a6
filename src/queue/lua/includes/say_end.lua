--- @include published_whole
--- @include push

--- Push a job's end to the processes that wait for it (a word each). A long text is for them to read, unless nothing is
--- `kept` to read. `gathered`, where given: what is for the caller to push, by to whom.
local function sayEnd(base, waiters, state, workflow, id, run, text, kept, gathered)
  if kept and #text > PUBLISHED_WHOLE then state, text = 'ended', '' end
  local said = gathered and gathered[waiters]
  if said then
    local n = #said
    said[n + 1], said[n + 2], said[n + 3], said[n + 4], said[n + 5] = state, workflow, id, run, text
  elseif gathered then
    gathered[waiters] = { state, workflow, id, run, text }
  else
    push(base, waiters, { state, workflow, id, run, text })
  end
end
