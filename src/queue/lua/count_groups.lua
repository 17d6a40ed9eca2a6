--- Count the waiting jobs of some of the groups.
--- keys: base
--- args: workflow, cursor
--- returns: the next cursor (0 after the last), waiting jobs of these groups, how many of the groups stand in `ready`,
---   when the oldest of their heads was created (0: none)
--- @include key_of
--- @include read_spec
local base, workflow = KEYS[1], ARGV[1]
local ready, page = keyOf(base, workflow, 'ready'), redis.call('SSCAN', keyOf(base, workflow, 'groups'), ARGV[2], 'COUNT', 200)
local jobs, standing, oldest = 0, 0, 0
for _, group in ipairs(page[2]) do
  local waiting = keyOf(base, workflow, 'g', group)
  jobs = jobs + redis.call('ZCARD', waiting)
  if redis.call('ZSCORE', ready, 'g:' .. group) then standing = standing + 1 end
  local head = redis.call('ZRANGE', waiting, 0, 0)[1]
  local spec = head and redis.call('HGET', keyOf(base, workflow, 'j', head), 'spec')
  local created = spec and readSpec(spec).created or 0
  if created > 0 and (oldest == 0 or created < oldest) then oldest = created end
end
return { tonumber(page[1]), jobs, standing, oldest }
