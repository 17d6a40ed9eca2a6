--- @include key_of
local LIMITS_READ = {}

--- The caps and the pause of a workflow, or of the namespace (workflow nil); read once a script.
--- A cap that cannot be read as a whole number of at least 1 becomes 0: it refuses, nothing fails open.
local function readLimits(base, workflow)
  local name = workflow or ''
  if LIMITS_READ[name] then return LIMITS_READ[name] end
  local fields = redis.call('HGETALL', keyOf(base, workflow, 'limits'))
  if #fields == 0 then
    LIMITS_READ[name] = { concurrency = math.huge, group = 1, paused = false, stream = 0 }
    return LIMITS_READ[name]
  end
  local stored = {}
  for i = 1, #fields, 2 do stored[fields[i]] = fields[i + 1] end
  local function cap(what, default)
    local text = stored['override:' .. what] or stored['declared:' .. what]
    if text == nil then return default end
    if text == 'none' then return math.huge end
    local number = string.match(text, '^%d+$') and tonumber(text)
    return number or 0
  end
  local limits = {
    concurrency = cap('concurrency', math.huge), group = cap('group', 1), paused = stored.paused ~= nil,
    stream = tonumber(stored['declared:stream'] or nil) or 0,
    limiters = stored['override:limiters'] or stored['declared:limiters'],
  }
  LIMITS_READ[name] = limits
  return limits
end
