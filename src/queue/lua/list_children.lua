--- A page of a job's children and where each stands.
--- keys: base
--- args: workflow, id, skip, limit
--- returns: children (path, workflow, id, state: empty when its record is gone)
--- @include key_of
local base, workflow, id, skip = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local found = {}
local members = redis.call('ZRANGE', keyOf(base, workflow, 'children', id), skip, skip + tonumber(ARGV[4]) - 1)
for _, member in ipairs(members) do
  local path, child, childId = string.match(member, '^([^\n]*)\n([^:]*):(.*)$')
  found[#found + 1] = { path, child, childId, redis.call('HGET', keyOf(base, child, 'j', childId), 'state') or '' }
end
return found
