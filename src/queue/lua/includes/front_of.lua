local BAND = 4294967296
local MAX_PRIORITY = 2097151

--- The score before the first place of a priority.
local function frontOf(priority)
  return (MAX_PRIORITY - priority) * BAND
end
