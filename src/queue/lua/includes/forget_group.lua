--- @include key_of

--- A job of a group was claimed that may have been its last: one of which none waits is not among the `groups` any more.
local function forgetGroup(base, workflow, group)
  if redis.call('EXISTS', keyOf(base, workflow, 'g', group)) == 0 then
    redis.call('SREM', keyOf(base, workflow, 'groups'), group)
  end
end
