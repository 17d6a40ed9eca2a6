--- @include key_of

--- Has one of the named events (a line each) arrived for the job, and not been taken?
local function waitingEvent(base, workflow, id, names)
  local awaited = {}
  for name in string.gmatch(names, '[^\n]+') do awaited[name] = true end
  for _, event in ipairs(redis.call('LRANGE', keyOf(base, workflow, 'events', id), 0, -1)) do
    if awaited[string.match(event, '^[^\n]*')] then return true end
  end
  return false
end
