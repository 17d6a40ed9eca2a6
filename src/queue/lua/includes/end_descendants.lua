--- @include drop_job
--- @include end_job
--- @include key_of
--- @include release_child

--- Have some of the jobs whose parents have ended follow them. Returns how many.
local function endDescendants(base, limit, now)
  local cascades, ended = keyOf(base, nil, 'cascades'), 0
  while ended < limit do
    local name = redis.call('SRANDMEMBER', cascades)
    if not name then break end
    local how, waiting = string.match(name, '^[^\t]*'), keyOf(base, nil, '@cascade', name)
    local members = redis.call('ZPOPMIN', waiting, limit - ended)
    for i = 1, #members, 2 do
      local workflow, id = string.match(members[i], '([^:\n]*):([^\n]*)$')
      if how == 'remove' then
        dropJob(base, workflow, id)
      elseif how == 'release' then
        releaseChild(base, workflow, id, now)
      else
        endJob(base, workflow, id, '', 'its parent has ended', now)
      end
      ended = ended + 1
    end
    if redis.call('EXISTS', waiting) == 0 then redis.call('SREM', cascades, name) end
  end
  return ended
end
