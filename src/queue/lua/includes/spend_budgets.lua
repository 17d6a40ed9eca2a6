--- @include key_of

--- Take the starts of some attempts from all of the budgets, which are open. Those of one call are one entry: when they
--- were, and how many the limiter had told before them, and with them (see `readStarts`).
local function spendBudgets(base, budgets, starts, now)
  if starts == 0 then return end
  for _, budget in ipairs(budgets) do
    local key = keyOf(base, nil, '@limiter', budget.key)
    redis.call('RPUSH', key, string.format('%d %d %d', now, budget.told, budget.told + starts))
    redis.call('PEXPIRE', key, budget.window)
    budget.told, budget.room = budget.told + starts, budget.room - starts
  end
end
