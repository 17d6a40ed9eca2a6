--- @include key_of

--- How many jobs of a group run, or keep it while they do not.
local function slotsOf(base, workflow, group)
  return tonumber(redis.call('HGET', keyOf(base, workflow, 'ga'), group) or '0')
end
