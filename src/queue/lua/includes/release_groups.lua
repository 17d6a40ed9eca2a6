--- @include free_slot when needed
--- @include key_of
--- @include line_up_group
--- @include read_limits

--- Jobs of groups are over: free their slots, and have the groups stand in `ready` as `lineUpGroup` does, in few commands
--- where nothing limits the rate and no job of any of them runs. `groups`: by workflow a group for each job, at most 300.
local function releaseGroups(base, groups)
  for workflow, names in pairs(groups) do
    local limits, slots, waiting = readLimits(base, workflow), keyOf(base, workflow, 'ga'), keyOf(base, workflow, 'g', '')
    local counts, last = redis.call('HMGET', slots, unpack(names)), true
    for i = 1, #names do last = last and counts[i] == '1' end
    if last then
      redis.call('HDEL', slots, unpack(names))
    else
      for _, group in ipairs(names) do freeSlot(base, workflow, group) end
    end
    if not last or limits.limiters or readLimits(base).limiters then
      for _, group in ipairs(names) do lineUpGroup(base, workflow, group) end
    else
      local places, n = {}, 0
      for _, group in ipairs(names) do
        local head = redis.call('ZRANGE', waiting .. group, 0, 0, 'WITHSCORES')
        -- one of which none waits was not put there again when the last was claimed
        if head[1] then
          places[n + 1], places[n + 2] = head[2], 'g:' .. group
          n = n + 2
        end
      end
      if n > 0 then redis.call('ZADD', keyOf(base, workflow, 'ready'), unpack(places)) end
    end
  end
end
