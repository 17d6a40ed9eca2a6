--- A page of a job's children and where each stands.
--- keys: base
--- args: workflow, id, skip, limit
--- returns: children (path, workflow, id, state, 1 if it has children); of one whose record is gone the state is how it
---   ended, as long as the job's checkpoints say it, then empty
--- @include key_of
--- @include state_of
local STATES = { ['child:'] = 'completed', ['child!'] = 'failed', ['child~'] = 'cancelled' }
local base, workflow, id, skip = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local found, steps = {}, keyOf(base, workflow, 'steps', id)
local members = redis.call('ZRANGE', keyOf(base, workflow, 'children', id), skip, skip + tonumber(ARGV[4]) - 1)
for _, member in ipairs(members) do
  local path, child, childId = string.match(member, '^([^\n]*)\n([^:]*):(.*)$')
  local record = redis.call('HMGET', keyOf(base, child, 'j', childId), 'state', 'kids', 'spec')
  local state = stateOf(base, child, childId, record[1], record[3])
    or STATES[string.sub(redis.call('HGET', steps, path) or '', 1, 6)] or ''
  found[#found + 1] = { path, child, childId, state, record[2] and 1 or 0 }
end
return found
