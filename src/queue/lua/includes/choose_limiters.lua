--- @include decode_as
--- @include is_limiter
--- @include read_limits
local CHOSEN = {}

--- The limiters of a workflow by name: those that its own list names, else all of the namespace's; read once a script for
--- each list. Returns nil where they cannot be read; who asks then refuses.
local function chooseLimiters(base, workflow)
  local listed = readLimits(base, workflow).limiters
  if CHOSEN[listed or ''] then return CHOSEN[listed or ''] end
  local limiters = decodeAs('{', readLimits(base, nil).limiters or '{}')
  if not limiters then return nil end
  local chosen = limiters
  if listed then
    local names = decodeAs('[', listed)
    if not names then return nil end
    chosen = {}
    for _, name in ipairs(names) do
      if type(name) ~= 'string' or not limiters[name] then return nil end
      chosen[name] = limiters[name]
    end
  end
  for _, limiter in pairs(chosen) do
    if not isLimiter(limiter) then return nil end
  end
  CHOSEN[listed or ''] = chosen
  return chosen
end
