--- @include key_of

--- Push what happens to a job to the processes that watch it.
local function announce(base, workflow, id, run, event, text, watchers)
  local message = table.concat({ 'watch:' .. event, workflow, id, run, text }, '\n')
  for process in string.gmatch(watchers, '%S+') do
    redis.call('PUBLISH', keyOf(base, nil, '@waiting', process), message)
  end
end
