--- @include key_of
--- @include read_starts
-- how many entries are looked at, and if all of them are over, how many then
local LOOKED_AT = { 1, 64, 256 }

--- See what a limiter's budget still has (`room`), and when it will have more (`again`): the starts within its window
--- are kept, those of one call together (see `spendBudgets`), so that no window ever holds more than the limit. A pause of
--- the limiter closes it.
local function openBudget(base, budget, now)
  local starts = keyOf(base, nil, '@limiter', budget.key)
  local over, forgotten, entries, instant, before = now - budget.window, 0, nil, nil, nil
  for _, most in ipairs(LOOKED_AT) do
    entries = redis.call('LRANGE', starts, 0, most - 1)
    instant, before = readStarts(entries[forgotten + 1])
    while instant and instant <= over do
      forgotten = forgotten + 1
      instant, before = readStarts(entries[forgotten + 1])
    end
    if forgotten < most then break end
  end
  if forgotten > 0 then redis.call('LTRIM', starts, forgotten, -1) end
  -- that of all that were looked at none is left does not mean that there are no more
  if not instant and forgotten > 0 then instant, before = readStarts(redis.call('LINDEX', starts, 0)) end
  budget.again, budget.told, budget.room = nil, 0, budget.limit
  if instant then
    local _, _, told = readStarts(redis.call('LINDEX', starts, -1))
    budget.told, budget.room = told, budget.limit - (told - before)
  end
  if budget.room <= 0 then budget.room, budget.again = 0, math.min(instant or over, now) + budget.window end
  local paused = tonumber(redis.call('GET', keyOf(base, nil, '@limiter-pause', budget.name)) or nil)
  if paused and paused > now then budget.room, budget.again = 0, math.max(paused, budget.again or 0) end
  return budget
end
