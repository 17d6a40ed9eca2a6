--- @include key_of
-- how many starts are looked at, and if all of them are over, how many then
local LOOKED_AT = { 1, 64, 256 }

--- See what a limiter's budget still has (`room`), and when it will have more (`again`): the starts within its window
--- are kept one by one, so that no window ever holds more than the limit. A pause of the limiter closes it.
local function openBudget(base, budget, now)
  local starts = keyOf(base, nil, '@limiter', budget.key)
  local over, forgotten, old = now - budget.window, 0, nil
  for _, most in ipairs(LOOKED_AT) do
    old = redis.call('LRANGE', starts, 0, most - 1)
    while old[forgotten + 1] and tonumber(old[forgotten + 1]) <= over do forgotten = forgotten + 1 end
    if forgotten < most then break end
  end
  if forgotten > 0 then redis.call('LTRIM', starts, forgotten, -1) end
  budget.again = nil
  budget.room = budget.limit - redis.call('LLEN', starts)
  if budget.room <= 0 then
    budget.room, budget.again = 0, tonumber(old[forgotten + 1] or over) + budget.window
  end
  local paused = tonumber(redis.call('GET', keyOf(base, nil, '@limiter-pause', budget.name)) or nil)
  if paused and paused > now then budget.room, budget.again = 0, math.max(paused, budget.again or 0) end
  return budget
end
