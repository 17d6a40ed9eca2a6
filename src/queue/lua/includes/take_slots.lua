--- @include long
--- @include many

--- Write how many slots of their groups the claimed jobs have taken: `taken` (group, number)*, into the key `slots`. Returns
--- what is still to be written: nothing.
local function takeSlots(slots, taken)
  if #taken >= 2 * MANY then
    redis.call('HSET', slots, LONG, '', unpack(taken))
    redis.call('HDEL', slots, LONG)
  elseif taken[1] then
    redis.call('HSET', slots, unpack(taken))
  end
  return {}
end
