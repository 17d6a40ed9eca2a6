--- @include key_of

--- A job of a group has been claimed: it takes a slot of it.
local function takeSlot(base, workflow, group)
  redis.call('HINCRBY', keyOf(base, workflow, 'ga'), group, 1)
end
