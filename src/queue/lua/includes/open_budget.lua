--- @include key_of
local FORGOTTEN_AT_ONCE = 256

--- See what a limiter's budget still has (`room`), and when it will have more (`again`): the starts within its window
--- are kept one by one, so that no window ever holds more than the limit. A pause of the limiter closes it.
local function openBudget(base, budget, now)
  local starts = keyOf(base, nil, '@limiter', budget.key)
  local over, old = now - budget.window, redis.call('LRANGE', starts, 0, FORGOTTEN_AT_ONCE - 1)
  local forgotten = 0
  while old[forgotten + 1] and tonumber(old[forgotten + 1]) <= over do forgotten = forgotten + 1 end
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
