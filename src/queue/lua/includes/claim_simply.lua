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
--- the rate of groups and no events are written. Returns how many were claimed, and how many of them start an attempt.
local function claimSimply(base, workflow, index, room, token, lease, now, claims, claimed)
  -- what each turn needs is not to be found anew in each
  local call, sub, byte = redis.call, string.sub, string.byte
  local ready, jobs = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'j', '')
  local waiting, slots, taken = keyOf(base, workflow, 'g', ''), keyOf(base, workflow, 'ga'), {}
  -- as texts: a number is written anew for each command
  local started, prefix = string.format('%d', now), workflow .. ':'
  local head = string.format('%s %s %d ', token, started, now + lease)
  local entries, n, c, tries, most, full, emptied = {}, 0, #claimed, 0, readLimits(base, workflow).group, {}, {}
  local goOn = 0
  while n < 2 * room and tries < room + UNCLAIMABLE_AT_ONCE do
    local popped = call('ZPOPMIN', ready, room - n / 2)
    if not popped[1] then break end
    local counts, groups, g = nil, nil, 0
    -- the best place of a group that stands in line again: what was popped from behind it goes back
    local soonest = math.huge
    for i = 1, #popped, 2 do
      tries = tries + 1
      local id, place, group, runs, line = nil, popped[i + 1], nil, nil, nil
      if byte(popped[i]) == GROUP then
        if not counts then
          groups = {}
          for k = i, #popped, 2 do
            if byte(popped[k]) == GROUP then groups[#groups + 1] = sub(popped[k], 3) end
          end
          counts = call('HMGET', slots, unpack(groups))
        end
        g = g + 1
        group, runs = groups[g], counts[g] and tonumber(counts[g]) or 0
        line = waiting .. group
        if runs < most then
          local first = call('ZPOPMIN', line)
          id, place = first[1], first[2]
        end
      else
        id = sub(popped[i], 3)
      end
      local job, claim = id and jobs .. id, nil
      if job then claim = claimUnstarted(job, call('HGETALL', job), index, id, place, group, head, started, claims) end
      if job and not claim then
        -- it may end another one, and wake a job of any group
        taken = takeSlots(slots, taken)
        local starts
        claim, starts = claimJob(base, workflow, index, id, place, head, now, true, claims)
        if claim and not starts then goOn = goOn + 1 end
      end
      if claim then
        entries[n + 1], entries[n + 2], claimed[c + 1] = id, claim, prefix .. id
        n, c = n + 2, c + 1
        if group and most == 1 then
          local t = #taken
          taken[t + 1], taken[t + 2] = group, '1'
        elseif group then
          call('HINCRBY', slots, group, 1)
        end
      end
      if group and claim and runs + 1 >= most then
        -- it was popped from the line, and does not stand in it again
        local f = #full + 1
        full[f], emptied[f] = group, line
      elseif group then
        soonest = math.min(soonest, maintainGroup(base, workflow, group) or soonest)
      end
      if soonest < math.huge and popped[i + 3] and soonest < tonumber(popped[i + 3]) then
        for back = i + 2, #popped, 2 do call('ZADD', ready, popped[back + 1], popped[back]) end
        break
      end
    end
  end
  takeSlots(slots, taken)
  forgetGroups(base, workflow, full, emptied)
  if entries[1] then enterActive(base, workflow, entries) end
  return n / 2, n / 2 - goOn
end
