--- Set limits of a workflow, or of the namespace (workflow empty). A worker `declared`s what its code says; an `override`
--- stands above it. What is declared as it is by default is not stored: where nothing is, nothing has to be read.
--- Raising wakes; lowering only holds back new claims.
--- keys: base
--- args: workflow, level, limits (what, value; 'unset' takes it away)*
--- returns: 1 where the cap of groups changed, so that waiting groups are to be maintained (else 0), 1 where groups stand in
---   line again by `end_descendants` (else 0)
--- @include arm_wake
--- @include cascade_end
--- @include key_of
local DEFAULTS = { concurrency = 'none', group = '1' }
local base, workflow = KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil
local limits, changed, relimited, readmits = keyOf(base, workflow, 'limits'), false, false, false
local function groupCap()
  local caps = redis.call('HMGET', limits, 'override:group', 'declared:group')
  return caps[1] or caps[2] or DEFAULTS.group
end
local before = groupCap()
for i = 3, #ARGV, 2 do
  local field, value = ARGV[2] .. ':' .. ARGV[i], ARGV[i + 1]
  if value == 'unset' or (ARGV[2] == 'declared' and value == DEFAULTS[ARGV[i]]) then value = false end
  if redis.call('HGET', limits, field) ~= value then
    if value then redis.call('HSET', limits, field, value) else redis.call('HDEL', limits, field) end
    changed = true
    if ARGV[i] == 'limiters' then relimited = true end
  end
end
if workflow then redis.call('SADD', keyOf(base, nil, 'workflows'), workflow) end
if changed then
  for _, name in ipairs(workflow and { workflow } or redis.call('SMEMBERS', keyOf(base, nil, 'workflows'))) do
    if relimited then
      -- groups whose budget was spent stand in line again, under the new ones
      readmits = cascadeEnd(base, name, nil, 'throttled', 'readmit') or readmits
    end
    armWake(base, name)
  end
end
return { groupCap() ~= before and 1 or 0, readmits and 1 or 0 }
