--- @include fail_expired
--- @include first_instant
--- @include key_of
--- @include read_spec
--- @include rest_counter
--- @include state_of
--- @include unplace_job
local EXPIRED_AT_ONCE = 50

--- Fail the jobs that were not started in time, a bounded batch.
--- Returns the instant at which to look again (0: more have expired), or nil.
local function expireDue(base, workflow, now)
  local expiring = keyOf(base, workflow, 'expiring')
  local due = redis.call('ZRANGEBYSCORE', expiring, '-inf', now, 'LIMIT', 0, EXPIRED_AT_ONCE)
  for _, id in ipairs(due) do
    redis.call('ZREM', expiring, id)
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'started', 'holds', 'failures')
    if record[2] and not record[3] and not record[5] then
      local spec = readSpec(record[2])
      unplaceJob(base, workflow, id, spec, stateOf(record[1], record[2]), record[4])
      failExpired(base, workflow, id, spec, now)
    end
  end
  if #due > 0 then restCounter(base, workflow) end
  if #due == EXPIRED_AT_ONCE then return 0 end
  return firstInstant(base, workflow, 'expiring')
end
