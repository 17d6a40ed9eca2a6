--- @include decode_as
--- @include is_limiter
--- @include read_limits

--- The limiters of a workflow by name: those that its own list names, else all of the namespace's.
--- Returns nil where they cannot be read; who asks then refuses.
local function chooseLimiters(base, workflow)
  local limiters, listed = decodeAs('{', readLimits(base, nil).limiters or '{}'), readLimits(base, workflow).limiters
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
  return chosen
end
