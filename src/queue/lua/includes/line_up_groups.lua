--- @include key_of
--- @include line_up_group
--- @include read_limits

--- Have groups stand in `ready` as `lineUpGroup` does with each, in few commands where nothing limits the rate and no job of
--- any of them runs. `groups`: by workflow, at most 300 of one.
local function lineUpGroups(base, groups)
  for workflow, names in pairs(groups) do
    local limits, running, waiting = readLimits(base, workflow), keyOf(base, workflow, 'ga', ''), keyOf(base, workflow, 'g', '')
    local keys, places, n = {}, {}, 0
    for i, group in ipairs(names) do keys[i] = running .. group end
    if limits.limiters or readLimits(base).limiters or redis.call('EXISTS', unpack(keys)) > 0 then
      for _, group in ipairs(names) do lineUpGroup(base, workflow, group) end
    else
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
