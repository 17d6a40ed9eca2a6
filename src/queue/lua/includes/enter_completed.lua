--- @include key_of
--- @include trim_ended

--- Enter jobs that `completeJob` has completed, at most 300 of a workflow, among its ended ones; their steps and events
--- go, their logs stay for as long as they do. `ended`: by workflow until when, and id.
local function enterCompleted(base, ended, now)
  for workflow, entries in pairs(ended) do
    local gone, logs = {}, {}
    for i = 2, #entries, 2 do
      gone[i - 1], gone[i] = keyOf(base, workflow, 'steps', entries[i]), keyOf(base, workflow, 'events', entries[i])
      logs[i / 2] = keyOf(base, workflow, 'log', entries[i])
    end
    redis.call('UNLINK', unpack(gone))
    if redis.call('EXISTS', unpack(logs)) > 0 then
      for i, log in ipairs(logs) do redis.call('PEXPIRE', log, entries[2 * i - 1] - now) end
    end
    redis.call('ZADD', keyOf(base, workflow, 'completed'), unpack(entries))
    trimEnded(base, workflow, 'completed', now)
  end
end
