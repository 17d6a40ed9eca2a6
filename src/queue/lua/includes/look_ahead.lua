--- @include key_of

--- Is there anything at all that an instant, or the end of a parent, makes due: jobs that are to follow their parents, or
--- in a workflow of `wants` jobs that are delayed or expire, or groups that stand aside? Mostly there is not, and one
--- command says so. Returns whether there are such children, and whether there may be the others.
local function lookAhead(base, wants)
  local keys = {}
  for i, want in ipairs(wants) do
    keys[3 * i - 2], keys[3 * i - 1] = keyOf(base, want[1], 'delayed'), keyOf(base, want[1], 'expiring')
    keys[3 * i] = keyOf(base, want[1], 'throttled')
  end
  local cascades = keyOf(base, nil, 'cascades')
  if redis.call('EXISTS', cascades, unpack(keys)) == 0 then return false, false end
  return redis.call('EXISTS', cascades) == 1, true
end
