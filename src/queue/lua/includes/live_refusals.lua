--- @include key_of
--- @include read_limits
local REFUSAL_LIVES = 10000

--- The workflows refused by the namespace cap whose workers still ask and that still have what to claim, longest
--- refused first; `till` is when one is over whose workers ask no more.
local function liveRefusals(base, now)
  local live, since = {}, redis.call('ZRANGE', keyOf(base, nil, 'capped'), 0, -1, 'WITHSCORES')
  for i = 1, #since, 2 do
    local seen = redis.call('ZSCORE', keyOf(base, nil, 'capped:seen'), since[i])
    local lives = seen and now - seen <= REFUSAL_LIVES and not readLimits(base, since[i]).paused
    if lives and redis.call('EXISTS', keyOf(base, since[i], 'ready')) == 1 then
      live[#live + 1] = { workflow = since[i], since = tonumber(since[i + 1]), till = seen + REFUSAL_LIVES + 1 }
    end
  end
  return live
end
