--- Start children of a running job, if the claim is still the token's. Those that were started before stay as they are.
--- keys: base
--- args: workflow, id, token, barrier, policy, most, rank, children (path, workflow, id, spec, data)*
---   most: how many of the barrier may run at once (0: all); rank: of the first of these children in the barrier
--- returns: 1 started | 0 the claim is lost
--- @include add_child
--- @include key_of
--- @include outstanding_children
--- @include read_clock
--- @include read_spec
--- @include require_memory
requireMemory(KEYS[1])
local base, workflow, id, barrier, policy = KEYS[1], ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local job, most, rank, now = keyOf(base, workflow, 'j', id), tonumber(ARGV[6]), tonumber(ARGV[7]), readClock()
local record = redis.call('HMGET', job, 'token', 'spec')
if record[1] ~= ARGV[3] then return 0 end
local steps, parent = keyOf(base, workflow, 'steps', id), { workflow, id, readSpec(record[2]).run }
redis.call('HSET', job, 'kids', '1')
local held = keyOf(base, workflow, 'held', id)
local running = outstandingChildren(base, workflow, id, barrier)
  - redis.call('ZLEXCOUNT', held, '[' .. barrier .. '\n', '(' .. barrier .. '\n\255')
for i = 8, #ARGV, 5 do
  if redis.call('HEXISTS', steps, ARGV[i]) == 0 then
    local place = (most == 0 or running < most) and 'now' or 'held'
    if place == 'now' then running = running + 1 end
    addChild(base, parent, barrier, ARGV[i], policy, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], place, rank, now)
  end
  rank = rank + 1
end
return 1
