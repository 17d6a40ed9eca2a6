--- @include read_limits

--- The limiters of a workflow by name: those that its own list names, else all of the namespace's.
--- Returns nil where they cannot be read; who asks then refuses.
local function chooseLimiters(base, workflow)
  local readable, limiters = pcall(cjson.decode, readLimits(base, nil).limiters or '{}')
  local listed, names = pcall(cjson.decode, readLimits(base, workflow).limiters or 'null')
  if not readable or not listed or type(limiters) ~= 'table' then return nil end
  if names == cjson.null then return limiters end
  if type(names) ~= 'table' then return nil end
  local chosen = {}
  for _, name in ipairs(names) do
    if not limiters[name] then return nil end
    chosen[name] = limiters[name]
  end
  return chosen
end
