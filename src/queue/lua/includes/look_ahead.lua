--- @include key_of

--- Is there anything at all that takes more than to claim the best places: jobs that are to follow their parents, or in a
--- workflow of `wants` jobs that are delayed or expire, groups that stand aside, or groups? Mostly there is not, and one
--- command says so. Returns whether there are such children, whether there may be something due, and whether there are
--- groups.
local function lookAhead(base, wants)
  local keys, groups, n = {}, {}, 0
  for i, want in ipairs(wants) do
    keys[n + 1], keys[n + 2] = keyOf(base, want[1], 'delayed'), keyOf(base, want[1], 'expiring')
    keys[n + 3], groups[i] = keyOf(base, want[1], 'throttled'), keyOf(base, want[1], 'groups')
    keys[n + 4] = groups[i]
    n = n + 4
  end
  local cascades = keyOf(base, nil, 'cascades')
  local found = redis.call('EXISTS', cascades, unpack(keys))
  if found == 0 then return false, false, false end
  local follow = redis.call('EXISTS', cascades)
  local grouped = groups[1] and redis.call('EXISTS', unpack(groups)) or 0
  -- what follows may set free a job of a group
  return follow == 1, found > follow + grouped, grouped + follow > 0
end
