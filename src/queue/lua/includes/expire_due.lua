--- @include fail_expired
--- @include first_instant
--- @include key_of
--- @include read_spec
--- @include rest_counter
--- @include state_of
--- @include unplace_job
local EXPIRED_AT_ONCE = 50
local EXPIRED_LEFT = EXPIRED_AT_ONCE

--- Fail the jobs that were not started in time, a bounded batch a script.
--- Returns the instant at which to look again (0: more have expired), or nil.
local function expireDue(base, workflow, now)
  local expiring, most = keyOf(base, workflow, 'expiring'), EXPIRED_LEFT
  local due = redis.call('ZRANGEBYSCORE', expiring, '-inf', now, 'LIMIT', 0, most)
  EXPIRED_LEFT = most - #due
  for _, id in ipairs(due) do
    redis.call('ZREM', expiring, id)
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'started', 'holds', 'failures')
    if record[2] and not record[3] and not record[5] then
      local spec = readSpec(record[2])
      unplaceJob(base, workflow, id, spec, stateOf(base, workflow, id, record[1], record[2]), record[4])
      failExpired(base, workflow, id, spec, now)
    end
  end
  if #due > 0 then restCounter(base, workflow) end
  if #due == most then return 0 end
  return firstInstant(base, workflow, 'expiring')
end
