--- @include announce when needed
--- @include emit_event
--- @include key_of
local PUBLISHED_WHOLE = 16384

--- Push a job's end to the processes that wait for it, those that watch it, and the stream of events. A long text is
--- announced, and read by who wants it, unless nothing is kept to read (`kept` false). `told`: as `readTold` gives it.
local function publishEnd(base, workflow, id, spec, state, text, kept, told)
  emitEvent(base, workflow, state, id)
  local waiters, watchers = told[1], told[2]
  if watchers then announce(base, workflow, id, spec.run, state, text, watchers) end
  if not waiters then return end
  local said = state
  if kept and #text > PUBLISHED_WHOLE then said, text = 'ended', '' end
  local message = table.concat({ said, workflow, id, spec.run, text }, '\n')
  for process in string.gmatch(waiters, '%S+') do
    redis.call('PUBLISH', keyOf(base, nil, '@waiting', process), message)
  end
end
