--- @include choose_limiters
--- @include open_budget
local OPENED = {}

--- The budgets that all jobs of a workflow share, as far as they are open, and its limiters that count by group.
--- Returns nil where they cannot be read; who asks then refuses.
local function openBudgets(base, workflow, now)
  local shared, grouped = {}, {}
  local limiters = chooseLimiters(base, workflow)
  if not limiters then return nil end
  for name, limiter in pairs(limiters) do
    local budget = OPENED[name] or { name = name, key = name, limit = limiter[1], window = limiter[2] }
    if limiter[3] == 1 then
      grouped[#grouped + 1] = budget
    else
      -- what is left of one that another workflow has opened in this script is known
      if not budget.room or budget.room <= 0 then openBudget(base, budget, now) end
      OPENED[name] = budget
      shared[#shared + 1] = budget
    end
  end
  return shared, grouped
end
