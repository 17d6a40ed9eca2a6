--- @include key_of

--- A job of a group has given up its slot in it.
local function freeSlot(base, workflow, group)
  local slots = keyOf(base, workflow, 'ga')
  if redis.call('HINCRBY', slots, group, -1) <= 0 then redis.call('HDEL', slots, group) end
end
