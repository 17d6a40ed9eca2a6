--- @include key_of
--- @include read_limits
local REFUSAL_LIVES = 10000

--- The workflows refused by the namespace cap whose workers still ask and that still have what to claim, longest
--- refused first; `till` is when one is over whose workers ask no more, `lives` how long that is.
local function liveRefusals(base, now)
  local live, since = { lives = REFUSAL_LIVES + 1 }, redis.call('ZRANGE', keyOf(base, nil, 'capped'), 0, -1, 'WITHSCORES')
  for i = 1, #since, 2 do
    local workflow = since[i]
    local seen = redis.call('ZSCORE', keyOf(base, nil, 'capped:seen'), workflow)
    local lives = seen and now - seen <= REFUSAL_LIVES and not readLimits(base, workflow).paused
    if lives and redis.call('EXISTS', keyOf(base, workflow, 'ready')) == 1 then
      live[#live + 1] = { workflow = workflow, since = tonumber(since[i + 1]), till = seen + live.lives }
    end
  end
  return live
end
