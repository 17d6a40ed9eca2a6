--- Pause a workflow, or the namespace (workflow empty), or have it go on. Only claims stop.
--- keys: base
--- args: workflow, paused
--- returns: nothing
--- @include arm_wake
--- @include key_of
local base, workflow = KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil
local limits = keyOf(base, workflow, 'limits')
if ARGV[2] == '1' then
  redis.call('HSET', limits, 'paused', '1')
else
  redis.call('HDEL', limits, 'paused')
  local resumed = workflow and { workflow } or redis.call('SMEMBERS', keyOf(base, nil, 'workflows'))
  for _, name in ipairs(resumed) do armWake(base, name) end
end
