--- @include emit_event
--- @include enqueue_now
--- @include forget_ended
--- @include key_of
--- @include park_child
--- @include read_spec
--- @include read_state
--- @include rerun_job
--- @include write_end

--- Add a job as the child of another: `barrier` waits for it, `path` is where its end is written, `policy` (fail |
--- continue) what its failure means. `place`: now | held (`most` of its barrier run) | parked (it has children of its own
--- to wait for). One that was added before is no other job: if it has not succeeded it runs again, and if it has, while
--- nobody waited for it, its result is written now. `parent`: { workflow, id, nonce }.
local function addChild(base, parent, barrier, path, most, policy, workflow, id, text, data, place, now)
  local job, member = keyOf(base, workflow, 'j', id), workflow .. ':' .. id
  local state = readState(base, workflow, id)
  if state == 'completed' then
    local result = redis.call('HGET', job, 'result')
    writeEnd(base, parent[1], parent[2], barrier, path, workflow, id, state, result)
    return
  end
  redis.call('ZADD', keyOf(base, parent[1], 'barrier', parent[2]), 0, barrier .. '\n' .. member)
  redis.call('ZADD', keyOf(base, parent[1], 'children', parent[2]), 0, path .. '\n' .. member)
  if state then
    if state == 'failed' or state == 'cancelled' then rerunJob(base, workflow, id, place) end
    return
  end
  forgetEnded(base, workflow, id)
  local spec = readSpec(text)
  text = string.format('{"created":%d,', now) .. string.sub(text, 2)
  local link = table.concat({ parent[1], parent[2], parent[3], barrier, path, most, policy }, '\n')
  redis.call('HSET', job, 'parent', link)
  if place == 'now' then
    if spec.expires > 0 then redis.call('ZADD', keyOf(base, workflow, 'expiring'), now + spec.expires, id) end
    enqueueNow(base, workflow, id, spec, text, data)
  else
    redis.call('HSET', job, 'data', data, 'spec', text)
    parkChild(base, parent[1], parent[2], barrier, path, workflow, id, place == 'held', now)
  end
  emitEvent(base, workflow, 'added', id)
end
