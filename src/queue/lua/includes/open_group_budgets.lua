--- @include open_budget

--- The budgets of one group, as far as they are open.
local function openGroupBudgets(base, limiters, group, now)
  local budgets = {}
  for _, limiter in ipairs(limiters) do
    budgets[#budgets + 1] = openBudget(base, {
      name = limiter.name, key = limiter.name .. ':' .. group, limit = limiter.limit, window = limiter.window,
    }, now)
  end
  return budgets
end
