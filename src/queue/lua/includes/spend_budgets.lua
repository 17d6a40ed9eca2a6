--- @include key_of

--- Take the starts of some attempts from all of the budgets.
local function spendBudgets(base, budgets, starts, now)
  if starts == 0 then return end
  local times = {}
  for i = 1, starts do times[i] = string.format('%.0f', now) end
  for _, budget in ipairs(budgets) do
    local key = keyOf(base, nil, '@limiter', budget.key)
    redis.call('RPUSH', key, unpack(times))
    redis.call('PEXPIRE', key, budget.window)
    budget.room = budget.room - starts
  end
end
