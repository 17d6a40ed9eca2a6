--- @include key_of
--- @include read_clock

--- The ids of some of a workflow's jobs in a state, `limit` of them or all that there are: from the `skip`th of those that
--- have ended or wait for something, any of those that can run or do. A record that has expired is no job.
local function pageOfState(base, workflow, state, skip, limit)
  local members = keyOf(base, workflow, state)
  if state == 'active' then return redis.call('HRANDFIELD', members, limit) end
  if state == 'completed' or state == 'cancelled' then
    skip = skip + redis.call('ZCOUNT', members, '-inf', string.format('(%d', readClock()))
  end
  if state ~= 'waiting' then return redis.call('ZRANGE', members, skip, skip + limit - 1) end
  local ids, ready, standing = {}, keyOf(base, workflow, 'ready'), 0
  local function takeGroup(group)
    local waiting = redis.call('ZRANGE', keyOf(base, workflow, 'g', group), 0, limit - #ids - 1)
    for _, id in ipairs(waiting) do ids[#ids + 1] = id end
  end
  for _, member in ipairs(redis.call('ZRANGE', ready, 0, limit - 1)) do
    if #ids == limit then return ids end
    local name = string.sub(member, 3)
    if string.sub(member, 1, 2) == 'j:' then
      ids[#ids + 1] = name
    else
      standing = standing + 1
      takeGroup(name)
    end
  end
  -- what is left waits for its group; so many members have enough others among them than those that stood in `ready`
  for _, group in ipairs(redis.call('SRANDMEMBER', keyOf(base, workflow, 'groups'), limit + standing)) do
    if #ids == limit then break end
    if not redis.call('ZSCORE', ready, 'g:' .. group) then takeGroup(group) end
  end
  return ids
end
