--- @include key_of

--- From now on, for the time that `dedup` says, this life of a job stands for those that come with its key in the same way.
local function openWindow(base, workflow, id, run, dedup)
  local kind, window, key = string.match(dedup, '^(%a+) (%d+) (.*)$')
  redis.call('SET', keyOf(base, workflow, 'dedup', kind .. ':' .. key), run .. ' ' .. id, 'PX', window)
end
