--- @include announce when needed
--- @include emit_event
--- @include say_end

--- Push a job's end to the processes that wait for it, those that watch it, and the stream of events. A long text is
--- announced, and read by who wants it, unless nothing is kept to read (`kept` false). `told`: as `readTold` gives it.
local function publishEnd(base, workflow, id, spec, state, text, kept, told)
  emitEvent(base, workflow, state, id)
  local waiters, watchers = told[1], told[2]
  if watchers then announce(base, workflow, id, spec.run, state, text, watchers) end
  if waiters then sayEnd(base, waiters, state, workflow, id, text, spec.run, kept) end
end
