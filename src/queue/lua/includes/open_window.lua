--- @include key_of

--- From now on, for the time that `dedup` says, a job stands for those that come with its key.
local function openWindow(base, workflow, id, dedup)
  local window, key = string.match(dedup, '^%a+ (%d+) (.*)$')
  redis.call('SET', keyOf(base, workflow, 'dedup', key), id, 'PX', window)
end
