--- Start children of a running job, if the claim is still the token's. Those that were started before stay as they are, but
--- for such as have ended without success and whose end is not among the checkpoints any more: they run again.
--- keys: base
--- args: workflow, id, token, barrier, policy, most, children (path, workflow, id, spec, data)*
---   most: how many of the barrier may run at once (0: all); of more, those whose paths end in the lowest numbers do first
--- returns: 1 started | 0 the claim is lost
--- @include add_child
--- @include elaborate
--- @include is_claim
--- @include key_of
--- @include mark_claim
--- @include read_claim
--- @include read_clock
--- @include read_spec
--- @include require_memory
--- @include running_children
requireMemory(KEYS[1])
local base, workflow, id, barrier, policy = KEYS[1], ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local job, most, now = keyOf(base, workflow, 'j', id), tonumber(ARGV[6]), readClock()
local claim, spec = readClaim(base, workflow, id), redis.call('HGET', job, 'spec')
if not spec or not isClaim(claim, ARGV[3]) then return 0 end
local steps, parent = keyOf(base, workflow, 'steps', id), { workflow, id, readSpec(spec).run }
redis.call('HSET', job, 'kids', '1')
markClaim(base, workflow, id, claim, ELABORATE)
redis.call('HDEL', job, 'stalls')
for i = 7, #ARGV, 5 do
  local path = ARGV[i]
  if redis.call('HEXISTS', steps, path) == 0 then
    local full = most > 0 and runningChildren(base, workflow, id, barrier) >= most
    local place = full and 'held' or 'now'
    addChild(base, parent, barrier, path, most, policy, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], place, now)
  end
end
return 1
