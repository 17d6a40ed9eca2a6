--- How many attempts may start within all of the budgets, and (where none may) when one will.
local function roomWithin(budgets)
  local room, again = math.huge, 0
  for _, budget in ipairs(budgets) do
    room = math.min(room, budget.room)
    again = math.max(again, budget.again or 0)
  end
  return room, again
end
