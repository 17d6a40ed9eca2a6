--- @include claim_job when needed
--- @include claim_unstarted
--- @include enter_active
--- @include forget_groups
--- @include key_of
--- @include maintain_group
--- @include read_limits
--- @include take_slots
--- @include unclaimable_at_once
local GROUP = 103 -- 'g'

--- Claim up to `room` of a workflow's runnable jobs into `claims` and `claimed`, as `claimReady` does, where nothing limits
--- the rate and no events are written. Returns how many were claimed.
local function claimSimply(base, workflow, index, room, token, lease, now, claims, claimed)
  local ready, jobs = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'j', '')
  local waiting, slots, taken = keyOf(base, workflow, 'g', ''), keyOf(base, workflow, 'ga'), {}
  -- as texts: a number is written anew for each command
  local deadline, started = string.format('%.0f', now + lease), string.format('%.0f', now)
  local entries, leases, tries, most, full = {}, {}, 0, readLimits(base, workflow).group, {}
  while #leases < 2 * room and tries < room + UNCLAIMABLE_AT_ONCE do
    local popped = redis.call('ZPOPMIN', ready, room - #leases / 2)
    if not popped[1] then break end
    local counts, g = nil, 0
    -- the best place of a group that stands in line again: what was popped from behind it goes back
    local soonest = math.huge
    for i = 1, #popped, 2 do
      tries = tries + 1
      local id, place, group, runs = string.sub(popped[i], 3), popped[i + 1], nil, nil
      if string.byte(popped[i]) == GROUP then
        if not counts then
          local groups = {}
          for k = i, #popped, 2 do
            if string.byte(popped[k]) == GROUP then groups[#groups + 1] = string.sub(popped[k], 3) end
          end
          counts = redis.call('HMGET', slots, unpack(groups))
        end
        g = g + 1
        group, runs = id, counts[g] and tonumber(counts[g]) or 0
        local head = runs < most and redis.call('ZPOPMIN', waiting .. id) or {}
        id, place = head[1], head[2]
      end
      local claim = id and claimUnstarted(jobs, index, id, place, group, token, started, claims)
      if id and not claim then
        -- it may end another one, and wake a job of any group
        taken = takeSlots(slots, taken)
        claim = claimJob(base, workflow, index, id, place, token, now, true, claims)
      end
      if claim then
        local n, member = #leases, workflow .. ':' .. id
        entries[n + 1], entries[n + 2], leases[n + 1], leases[n + 2] = id, claim, deadline, member
        claimed[#claimed + 1] = member
        if group and most == 1 then
          local t = #taken
          taken[t + 1], taken[t + 2] = group, '1'
        elseif group then
          redis.call('HINCRBY', slots, group, 1)
        end
      end
      if group and claim and runs + 1 >= most then
        -- it was popped from the line, and does not stand in it again
        full[#full + 1] = group
      elseif group then
        soonest = math.min(soonest, maintainGroup(base, workflow, group) or soonest)
      end
      if soonest < math.huge and popped[i + 3] and soonest < tonumber(popped[i + 3]) then
        for back = i + 2, #popped, 2 do redis.call('ZADD', ready, popped[back + 1], popped[back]) end
        break
      end
    end
  end
  takeSlots(slots, taken)
  forgetGroups(base, workflow, full)
  if entries[1] then enterActive(base, workflow, entries, leases) end
  return #leases / 2
end
