--- @include published_whole
--- @include push

--- Push a job's end to the processes that wait for it (a word each). A long text is for them to read, unless nothing is
--- `kept` to read.
local function sayEnd(base, waiters, state, workflow, id, text, run, kept)
  if kept and #text > PUBLISHED_WHOLE then state, text = 'ended', '' end
  push(base, waiters, { state, workflow, id, text, run })
end
