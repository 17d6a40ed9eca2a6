--- @include claim_job
--- @include key_of
--- @include maintain_group
--- @include read_limits
local UNCLAIMABLE_AT_ONCE = 64

--- Claim up to `room` of a workflow's runnable jobs, the best place first, into `claims` (with `index` in front).
--- A group's next job comes into the order as soon as the one before it is claimed. Returns how many.
local function claimReady(base, workflow, index, room, token, lease, now, claims)
  local ready = keyOf(base, workflow, 'ready')
  local ids, leases, tries = {}, {}, 0
  while #ids < room and tries < room + UNCLAIMABLE_AT_ONCE do
    local popped = redis.call('ZPOPMIN', ready, room - #ids)
    if #popped == 0 then break end
    for i = 1, #popped, 2 do
      local id, place, group = string.sub(popped[i], 3), popped[i + 1], nil
      if string.sub(popped[i], 1, 1) == 'g' then
        group, id = id, nil
        if redis.call('SCARD', keyOf(base, workflow, 'ga', group)) < readLimits(base, workflow).group then
          local head = redis.call('ZPOPMIN', keyOf(base, workflow, 'g', group))
          id, place = head[1], head[2]
        end
      end
      tries = tries + 1
      local claim = id and claimJob(base, workflow, id, place, token, now)
      if claim then
        table.insert(claim, 1, index)
        claims[#claims + 1] = claim
        ids[#ids + 1] = id
        leases[#leases + 1] = now + lease
        leases[#leases + 1] = workflow .. ':' .. id
        if group then redis.call('SADD', keyOf(base, workflow, 'ga', group), id) end
      end
      local nextPlace = group and maintainGroup(base, workflow, group)
      if nextPlace and popped[i + 3] and nextPlace < tonumber(popped[i + 3]) then
        for back = i + 2, #popped, 2 do redis.call('ZADD', ready, popped[back + 1], popped[back]) end
        break
      end
    end
  end
  if #ids > 0 then
    redis.call('SADD', keyOf(base, workflow, 'active'), unpack(ids))
    redis.call('ZADD', keyOf(base, nil, 'active'), unpack(leases))
  end
  return #ids
end
