--- @include key_of
--- @include trim_ended

--- Enter jobs that have completed, at most 300 of a workflow, among its ended ones. `ended`: by workflow until when, and id.
local function enterCompleted(base, ended, now)
  for workflow, entries in pairs(ended) do
    if entries[1] then
      redis.call('ZADD', keyOf(base, workflow, 'completed'), unpack(entries))
      trimEnded(base, workflow, 'completed', now)
    end
  end
end
