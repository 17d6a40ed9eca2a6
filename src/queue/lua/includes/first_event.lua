--- @include key_of

--- The oldest event of a name that has arrived for a job and was not taken, as it stands there; or nil. Those of a name
--- stand in the order in which they came, however many there are of others.
local function firstEvent(base, workflow, id, name)
  local events = keyOf(base, workflow, 'events', id)
  return redis.call('ZRANGEBYLEX', events, '[' .. name .. '\n', '(' .. name .. '\n\255', 'LIMIT', 0, 1)[1]
end
