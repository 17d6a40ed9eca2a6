--- Set caps of a workflow, or of the namespace (workflow empty). A worker `declared`s what its code says; an `override`
--- stands above it. Raising wakes; lowering only holds back new claims.
--- keys: base
--- args: workflow, level, caps (what, value)*
--- returns: 1 when a cap of groups changed, so that waiting groups are to be maintained | 0
--- @include arm_wake
--- @include key_of
local base, workflow = KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil
local limits, regroup = keyOf(base, workflow, 'limits'), 0
for i = 3, #ARGV, 2 do
  local field = ARGV[2] .. ':' .. ARGV[i]
  if redis.call('HGET', limits, field) ~= ARGV[i + 1] then
    redis.call('HSET', limits, field, ARGV[i + 1])
    if ARGV[i] == 'group' then regroup = 1 end
  end
end
if workflow then
  redis.call('SADD', keyOf(base, nil, 'workflows'), workflow)
  armWake(base, workflow)
else
  for _, name in ipairs(redis.call('SMEMBERS', keyOf(base, nil, 'workflows'))) do armWake(base, name) end
end
return regroup
