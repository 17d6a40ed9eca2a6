--- @include expire_record
--- @include forget_portion
--- @include key_of
--- @include read_spec
--- @include release_child
--- @include walk_on

--- The retention of some of the children begins whose parent has ended for good; after the last, that of the parent.
--- `round`: the life and round of the parent that has ended. Returns how many.
local function retainChildren(base, name, round, workflow, id, limit, now)
  local job, children = keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'children', id)
  local record = redis.call('HMGET', job, 'state', 'spec')
  local state, spec = record[1], record[2] and readSpec(record[2])
  if (state ~= 'completed' and state ~= 'cancelled') or spec.run .. ' ' .. spec.round ~= round then
    forgetPortion(base, name)
    return 1
  end
  local page, last = walkOn(base, name, children, limit)
  for _, member in ipairs(page) do
    local child, childId = string.match(member, '([^:\n]*):([^\n]*)$')
    releaseChild(base, child, childId, now)
  end
  if last and spec.result_ttl >= 0 then
    expireRecord(base, workflow, id, state, spec.result_ttl, now)
    redis.call('PEXPIRE', children, spec.result_ttl)
  end
  return #page
end
