--- @include add_delayed when needed
--- @include claim_job
--- @include claim_simply
--- @include claim_unstarted
--- @include enter_active
--- @include held_group when needed
--- @include key_of
--- @include maintain_group
--- @include open_budgets when needed
--- @include open_group_budgets when needed
--- @include read_limits
--- @include room_within when needed
--- @include slots_of
--- @include spend_budgets when needed
--- @include throttle_group when needed
--- @include unclaimable_at_once
local GROUP_BUDGETS_AT_ONCE = 300
local UNREADABLE_FOR = 5000
local GROUP = 103 -- 'g'

--- Claim up to `room` of a workflow's runnable jobs, the best place first, into `claims`, and as
--- `workflow:id` into `claimed`. A group's next job comes into the order as soon as the one before it is claimed. A job
--- that the budgets refuse keeps its place. Returns how many were claimed, when the budgets of all will let more start if
--- they were what refused, and when that of a group will which has been told to stand aside.
local function claimReady(base, workflow, index, room, token, lease, now, claims, claimed)
  local shared, grouped, open, again, spare = {}, {}, math.huge, 0, UNCLAIMABLE_AT_ONCE
  local own = readLimits(base, workflow)
  local silent = own.stream == 0
  if readLimits(base).limiters or own.limiters then
    shared, grouped = openBudgets(base, workflow, now)
    if not shared then return 0, now + UNREADABLE_FOR end
    open, again = roomWithin(shared)
    if silent and #grouped == 0 and open >= room then
      local served, starts = claimSimply(base, workflow, index, room, token, lease, now, claims, claimed)
      spendBudgets(base, shared, starts, now)
      return served
    end
    if #grouped > 0 then
      local most = math.max(math.floor(GROUP_BUDGETS_AT_ONCE / #grouped), 1)
      room, spare = math.min(room, most), math.min(spare, most)
    end
  end
  local ready, jobs = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'j', '')
  -- as texts: a number is written anew for each command
  local stamp = string.format('%d', now)
  local head = string.format('%s %s %d ', token, stamp, now + lease)
  local entries, tries, starts, refused, aside = {}, 0, 0, false, nil
  while #entries < 2 * room and tries < room + spare and not refused do
    local popped = redis.call('ZPOPMIN', ready, math.min(room - #entries / 2, math.max(open - starts, 1)))
    if #popped == 0 then break end
    -- the best place of a group that stands in line again: what was popped from behind it goes back
    local soonest = math.huge
    for i = 1, #popped, 2 do
      local id, place, group, waiting, budgets = string.sub(popped[i], 3), popped[i + 1], nil, nil, nil
      local groupOpen, groupAgain = math.huge, 0
      if string.byte(popped[i]) == GROUP then
        group, id, waiting = id, nil, keyOf(base, workflow, 'g', id)
        if slotsOf(base, workflow, group) < own.group then
          local first = redis.call('ZPOPMIN', waiting)
          id, place = first[1], first[2]
        end
      end
      local counted = id and #grouped > 0 and (group or heldGroup(base, workflow, id))
      if counted then
        budgets = openGroupBudgets(base, grouped, counted, now)
        groupOpen, groupAgain = roomWithin(budgets)
      end
      tries = tries + 1
      local claim, started = nil, false
      local mayStart = starts < open and groupOpen > 0
      if id then
        local job = jobs .. id
        claim = silent and mayStart
          and claimUnstarted(job, redis.call('HGETALL', job), index, id, place, group, head, stamp, claims)
        if claim then
          started = true
        else
          claim, started = claimJob(base, workflow, index, id, place, head, now, mayStart, claims)
        end
      end
      if claim then
        local n = #entries
        entries[n + 1], entries[n + 2], claimed[#claimed + 1] = id, claim, workflow .. ':' .. id
        if group then redis.call('HINCRBY', keyOf(base, workflow, 'ga'), group, 1) end
        if started then
          starts = starts + 1
          if budgets then spendBudgets(base, budgets, 1, now) end
        end
      elseif claim == false then
        refused = starts >= open and groupOpen > 0
        if not refused then aside = math.min(aside or groupAgain, groupAgain) end
        if refused or group then redis.call('ZADD', waiting or ready, place, waiting and id or popped[i]) end
        if not refused and group then throttleGroup(base, workflow, group, groupAgain) end
        -- nobody else of its group may run before it
        if not refused and not group then addDelayed(base, workflow, id, groupAgain) end
      end
      if group then soonest = math.min(soonest, maintainGroup(base, workflow, group) or math.huge) end
      if refused or (popped[i + 3] and soonest < tonumber(popped[i + 3])) then
        for back = i + 2, #popped, 2 do redis.call('ZADD', ready, popped[back + 1], popped[back]) end
        break
      end
    end
  end
  if shared[1] then spendBudgets(base, shared, starts, now) end
  if entries[1] then enterActive(base, workflow, entries) end
  return #entries / 2, refused and math.max(again, now + 1) or nil, aside
end
