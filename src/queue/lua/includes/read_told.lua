--- @include key_of

--- Who is to hear of a job's end, and whether it has children: { waiters, watchers, parent, kids }.
local function readTold(base, workflow, id)
  return redis.call('HMGET', keyOf(base, workflow, 'j', id), 'waiters', 'watchers', 'parent', 'kids')
end
