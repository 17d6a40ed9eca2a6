--- @include key_of
local LIMITS_READ = {}
local NO_LIMITS = { concurrency = math.huge, group = 1, paused = false, stream = 0 }

local function capOf(override, declared, default)
  local text = override or declared
  if text == nil then return default end
  if text == 'none' then return math.huge end
  local number = string.match(text, '^%d+$') and tonumber(text)
  return number or 0
end

--- The caps and the pause of a workflow, or of the namespace (workflow nil); read once a script. `none`:
--- it is known that there are none.
--- A cap that cannot be read as a whole number of at least 1 becomes 0: it refuses, nothing fails open.
local function readLimits(base, workflow, none)
  local name = workflow or ''
  local limits = LIMITS_READ[name]
  if limits then return limits end
  if none then
    LIMITS_READ[name] = NO_LIMITS
    return NO_LIMITS
  end
  local fields, stored = redis.call('HGETALL', keyOf(base, workflow, 'limits')), {}
  for i = 1, #fields, 2 do stored[fields[i]] = fields[i + 1] end
  limits = {
    concurrency = capOf(stored['override:concurrency'], stored['declared:concurrency'], math.huge),
    group = capOf(stored['override:group'], stored['declared:group'], 1), paused = stored.paused ~= nil,
    stream = tonumber(stored['declared:stream'] or nil) or 0,
    limiters = stored['override:limiters'] or stored['declared:limiters'],
  }
  LIMITS_READ[name] = limits
  return limits
end
