--- @include elaborate
--- @include key_of
--- @include mark_claim
--- @include read_claim
--- @include read_spec
--- @include state_of
--- @include tell_claim

--- A job's state, nonce, text of its end, and progress; while it goes on, there is no text, and a process is entered
--- among its `role` (waiters | watchers).
local function lookAtJob(base, workflow, id, run, role, process)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'result', 'failure', 'reason', role, 'progress')
  local state = stateOf(base, workflow, id, record[1], record[2])
  if not state then return 'missing', '', '', '' end
  local found, progress = readSpec(record[2]).run, record[7] or ''
  if run ~= '' and run ~= found then return 'replaced', found, '', '' end
  if state == 'completed' then return state, found, record[3], progress end
  if state == 'failed' then return state, found, record[4], progress end
  if state == 'cancelled' then return state, found, record[5], progress end
  local entered = record[6] or ''
  if not string.find(' ' .. entered .. ' ', ' ' .. process .. ' ', 1, true) then
    entered = entered == '' and process or entered .. ' ' .. process
    redis.call('HSET', job, role, entered)
    if state == 'active' and role == 'waiters' then
      tellClaim(base, workflow, id, entered)
    elseif state == 'active' then
      markClaim(base, workflow, id, readClaim(base, workflow, id), ELABORATE)
    end
  end
  return state, found, nil, progress
end
