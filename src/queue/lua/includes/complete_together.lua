--- @include apply_outcome when needed
--- @include key_of
--- @include published_whole
--- @include read_limits
--- @include result_ttl
--- @include say_end when needed
--- @include say_ends

--- Complete the jobs of a workflow that stand in ARGV from `first` to `last` (id, result, nonce), claimed with one token,
--- each as `applyOutcome` does, and in few commands where it takes little: it has no parent and no children, nobody watches it or
--- wants it cancelled, and its result is kept for as long as it is by default. Enters a status each into `statuses`.
--- `over`: as `applyOutcome` has it, and the groups that it has `freed` a slot of, by workflow.
local function completeTogether(base, workflow, first, last, token, now, over, statuses)
  local jobs, running, silent =
    keyOf(base, workflow, 'j', ''), keyOf(base, workflow, 'ga', ''), readLimits(base, workflow).stream == 0
  -- as texts: a number is written anew for each command
  local finished, kept, till = string.format('%.0f', now), tostring(RESULT_TTL), string.format('%.0f', now + RESULT_TTL)
  local released, ended, told = nil, nil, {}
  for i = first, last, 3 do
    local id, result, status, group = ARGV[i], ARGV[i + 1], nil, nil
    local job = jobs .. id
    local record = silent
      and redis.call('HMGET', job, 'token', 'spec', 'waiters', 'cancel', 'watchers', 'parent', 'kids') or {}
    local spec = record[2]
    if silent and record[1] ~= token then
      status = '0'
    elseif silent and not (record[4] or record[5] or record[6] or record[7])
      and not string.find(spec, '"result_ttl":', 1, true) then
      local grouped = string.find(spec, '"group":', 1, true)
      -- a group whose name is written with escapes is another case
      group = grouped and string.match(spec, '^"group":"([^"\\]*)"', grouped)
      if group or not grouped then status = '1' end
    end
    if status == '1' then
      redis.call('HSET', job, 'state', 'completed', 'result', result, 'token', '', 'finished', finished)
      redis.call('PEXPIRE', job, kept)
      if not released then
        released, ended = over.released[workflow] or {}, over.ended[workflow] or {}
        over.released[workflow], over.ended[workflow] = released, ended
      end
      local n = #ended
      released[#released + 1], ended[n + 1], ended[n + 2] = id, till, id
      if group then
        redis.call('SREM', running .. group, id)
        local freed = over.freed[workflow]
        if freed then freed[#freed + 1] = group else over.freed[workflow] = { group } end
      end
      if record[3] and #result > PUBLISHED_WHOLE then
        sayEnd(base, record[3], 'completed', workflow, id, result, ARGV[i + 2], true)
      elseif record[3] then
        local to = told[record[3]]
        if to then to[#to + 1] = i else told[record[3]] = { i } end
      end
    end
    statuses[#statuses + 1] = status or applyOutcome(base, 'completed', workflow, id, token, result, '', now, over)
  end
  if next(told) then sayEnds(base, workflow, told, first, last) end
end
