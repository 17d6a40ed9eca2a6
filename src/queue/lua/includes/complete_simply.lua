--- @include key_of
--- @include publish_end
--- @include read_limits
--- @include result_ttl

--- Complete a job as `applyOutcome` does, where that takes little: it has no parent and no children, nobody watches
--- it or wants it cancelled, and its result is kept for as long as it is by default. `over`: as `applyOutcome` has it, and the
--- groups that it has `freed` a slot of, by workflow.
--- Returns 1, 0 where the claim is lost and nothing was written, or nil: it takes more, and nothing was written.
local function completeSimply(base, workflow, id, token, result, now, over)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'token', 'spec', 'waiters', 'cancel', 'watchers', 'parent', 'kids')
  if record[1] ~= token then return '0' end
  local spec = record[2]
  -- a group whose name is written with escapes is another case
  local group = string.match(spec, '"group":"([^"\\]*)"')
  if record[4] or record[5] or record[6] or record[7] or string.find(spec, '"result_ttl":', 1, true)
    or readLimits(base, workflow).stream > 0 or (not group and string.find(spec, '"group":', 1, true)) then
    return nil
  end
  redis.call('HSET', job, 'state', 'completed', 'result', result, 'token', '', 'finished', now)
  redis.call('PEXPIRE', job, RESULT_TTL)
  local released, ended = over.released[workflow], over.ended[workflow]
  if not released then
    released = {}
    over.released[workflow] = released
  end
  if not ended then
    ended = {}
    over.ended[workflow] = ended
  end
  local n = #ended
  released[#released + 1], ended[n + 1], ended[n + 2] = id, now + RESULT_TTL, id
  if group then
    redis.call('SREM', keyOf(base, workflow, 'ga', group), id)
    local freed = over.freed[workflow]
    if freed then freed[#freed + 1] = group else over.freed[workflow] = { group } end
  end
  if record[3] then
    local run = string.match(spec, '"run":"([^"]*)"')
    publishEnd(base, workflow, id, { run = run }, 'completed', result, true, { record[3], false }, over.pushed)
  end
  return '1'
end
