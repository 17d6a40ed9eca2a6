--- @include key_of

--- Does a job still stand parked for what is named? It may have been cancelled or removed, and its id used again.
local function isParkedFor(base, workflow, id, what)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'awaits')
  return record[1] == 'parked' and record[2] == what
end
