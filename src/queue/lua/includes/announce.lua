--- @include push

--- Push what happens to a job to the processes that watch it.
local function announce(base, workflow, id, run, event, text, watchers)
  push(base, watchers, { 'watch:' .. event, workflow, id, text, run })
end
