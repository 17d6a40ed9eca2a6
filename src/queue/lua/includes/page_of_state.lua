--- @include key_of
--- @include read_clock

--- The ids of some of a workflow's jobs in a state, from the `skip`th. Of the waiting ones those without a group come in
--- order, then those of groups, in no order of their groups. A record that has expired is no job.
local function pageOfState(base, workflow, state, skip, limit)
  local members = keyOf(base, workflow, state)
  if state == 'active' then
    local ids, all = {}, redis.call('SMEMBERS', members)
    table.sort(all)
    for i = skip + 1, math.min(skip + limit, #all) do ids[#ids + 1] = all[i] end
    return ids
  end
  if state == 'completed' or state == 'cancelled' then
    local from = string.format('%.0f', readClock())
    return redis.call('ZRANGEBYSCORE', members, from, '+inf', 'LIMIT', skip, limit)
  end
  if state ~= 'waiting' then return redis.call('ZRANGE', members, skip, skip + limit - 1) end
  local ids, ready = {}, keyOf(base, workflow, 'ready')
  local function take(found)
    for _, id in ipairs(found) do
      if skip > 0 then skip = skip - 1 elseif #ids < limit then ids[#ids + 1] = id end
    end
  end
  if redis.call('EXISTS', keyOf(base, workflow, 'groups')) == 0 then
    -- nothing stands in `ready` but jobs: the page is found without a walk
    for _, member in ipairs(redis.call('ZRANGE', ready, skip, skip + limit - 1)) do ids[#ids + 1] = string.sub(member, 3) end
    return ids
  end
  local from = 0
  while #ids < limit do
    local page, single = redis.call('ZRANGE', ready, from, from + 199), {}
    if #page == 0 then break end
    for _, member in ipairs(page) do
      if string.sub(member, 1, 2) == 'j:' then single[#single + 1] = string.sub(member, 3) end
    end
    take(single)
    from = from + 200
  end
  for _, group in ipairs(redis.call('SMEMBERS', keyOf(base, workflow, 'groups'))) do
    if #ids >= limit then break end
    local waiting = keyOf(base, workflow, 'g', group)
    local size = redis.call('ZCARD', waiting)
    if size <= skip then
      skip = skip - size
    else
      take(redis.call('ZRANGE', waiting, 0, skip + limit - #ids - 1))
    end
  end
  return ids
end
