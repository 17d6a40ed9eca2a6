--- The place that a job had in the order when it was claimed, by its claim (see `enterActive`; false: there is none).
local function placeOf(claim)
  return claim and tonumber(string.match(claim, ' %S+ %S+ (%S+)')) or nil
end
