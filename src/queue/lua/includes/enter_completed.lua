--- @include key_of
--- @include trim_ended

--- Enter jobs that have completed, at most 300 of a workflow, among its ended ones; their steps and events go, their logs
--- stay for as long as they do. `ended`: by workflow until when, and id.
local function enterCompleted(base, ended, now)
  for workflow, entries in pairs(ended) do
    local steps, events = keyOf(base, workflow, 'steps', ''), keyOf(base, workflow, 'events', '')
    local log, beside, n = keyOf(base, workflow, 'log', ''), {}, 0
    for i = 2, #entries, 2 do
      local id = entries[i]
      beside[n + 1], beside[n + 2], beside[n + 3] = steps .. id, events .. id, log .. id
      n = n + 3
    end
    -- most have none of them
    if redis.call('EXISTS', unpack(beside)) > 0 then
      for i = 1, n, 3 do
        redis.call('UNLINK', beside[i], beside[i + 1])
        redis.call('PEXPIRE', beside[i + 2], entries[2 * (i + 2) / 3 - 1] - now)
      end
    end
    redis.call('ZADD', keyOf(base, workflow, 'completed'), unpack(entries))
    trimEnded(base, workflow, 'completed', now)
  end
end
