--- @include enqueue_now
--- @include emit_event
--- @include forget_ended
--- @include key_of
--- @include read_spec

--- Add a job as the child of another: `barrier` waits for it, `path` is where its end is written, `policy` (fail |
--- continue) what its failure means. `place`: now | held (by the `rank`th of its barrier) | parked (it has children of
--- its own to wait for). Adding it again changes nothing. `parent`: { workflow, id, nonce }.
local function addChild(base, parent, barrier, path, policy, workflow, id, text, data, place, rank, now)
  local job = keyOf(base, workflow, 'j', id)
  if redis.call('EXISTS', job) == 1 then return end
  forgetEnded(base, workflow, id)
  local spec = readSpec(text)
  text = string.format('{"created":%.0f,', now) .. string.sub(text, 2)
  local link = table.concat({ parent[1], parent[2], parent[3], barrier, path, policy }, '\n')
  local member = workflow .. ':' .. id
  redis.call('HSET', job, 'parent', link)
  redis.call('ZADD', keyOf(base, parent[1], 'barrier', parent[2]), 0, barrier .. '\n' .. member)
  redis.call('ZADD', keyOf(base, parent[1], 'children', parent[2]), 0, path .. '\n' .. member)
  if place == 'now' then
    enqueueNow(base, workflow, id, spec, text, data)
  else
    redis.call('HSET', job, 'state', 'parked', 'data', data, 'spec', text)
    redis.call('ZADD', keyOf(base, workflow, 'parked'), now, id)
    if place == 'held' then
      local held = string.format('%s\n%010d\n%s', barrier, rank, member)
      redis.call('ZADD', keyOf(base, parent[1], 'held', parent[2]), 0, held)
    end
  end
  emitEvent(base, workflow, 'added', id)
end
