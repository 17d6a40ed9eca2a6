--- @include arm_wake
--- @include clean_round
--- @include drop_job
--- @include end_job
--- @include key_of
--- @include maintain_group
--- @include release_child
--- @include rerun_children
--- @include retain_children
--- @include undo_children

--- Do some of what was put off, as it grows with the children of a job: those that were taken off its list are to be
--- cancelled with it, removed with it, or released (and groups, whose limiter has changed, to stand in line again); those
--- that stay on it are to be retained no longer than they say (retain), cancelled before it undoes (undo), left to
--- themselves before it begins anew, or seen to before it runs again.
--- Returns how much was done.
local function endDescendants(base, limit, now)
  local cascades, ended = keyOf(base, nil, 'cascades'), 0
  while ended < limit do
    local name = redis.call('SRANDMEMBER', cascades)
    if not name then break end
    local how, about, above, stamp, aboveId = string.match(name, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$')
    local room, done = limit - ended, nil
    if how == 'retain' then
      done = retainChildren(base, name, about, above, aboveId, room, now)
    elseif how == 'undo' then
      done = undoChildren(base, name, above, aboveId, room, now)
    elseif how == 'anew' then
      done = cleanRound(base, name, about, above, stamp, aboveId, room, now)
    elseif how == 'again' then
      done = rerunChildren(base, name, above, stamp, aboveId, room)
    else
      local waiting = keyOf(base, nil, '@cascade', name)
      local members = redis.call('ZPOPMIN', waiting, room)
      for i = 1, #members, 2 do
        local workflow, id = string.match(members[i], '([^:\n]*):([^\n]*)$')
        if how == 'readmit' then
          maintainGroup(base, above, members[i])
        elseif how == 'remove' then
          dropJob(base, workflow, id)
        elseif how == 'release' then
          releaseChild(base, workflow, id, now)
        else
          endJob(base, workflow, id, '', 'its parent has ended', now)
        end
      end
      done = #members / 2
      if how == 'readmit' then armWake(base, above) end
      if redis.call('EXISTS', waiting) == 0 then redis.call('SREM', cascades, name) end
    end
    ended = ended + math.max(done, 1)
  end
  return ended
end
