--- @include expire_record
--- @include key_of
--- @include put_off

--- The time begins for which the record of a completed or cancelled job is kept. Its children's begins with it: until
--- then they were kept because it was. They are told one by one, and its own begins after that, if it is to end.
local function beginRetention(base, workflow, id, spec, state, now, kids)
  local parent = kids and redis.call('EXISTS', keyOf(base, workflow, 'children', id)) == 1
  if parent then putOff(base, 'retain', spec.run .. ' ' .. spec.round, workflow, id) end
  if parent or spec.result_ttl < 0 then
    redis.call('ZADD', keyOf(base, workflow, state), 'inf', id)
  else
    expireRecord(base, workflow, id, state, spec.result_ttl, now)
  end
end
