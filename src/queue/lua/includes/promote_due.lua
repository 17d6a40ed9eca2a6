--- @include add_waiting
--- @include first_instant
--- @include key_of
--- @include read_spec
local PROMOTED_AT_ONCE = 100
local PROMOTED_LEFT = PROMOTED_AT_ONCE

--- Make the delayed jobs that are due runnable, in due order, a bounded batch a script. One whose record is gone is dropped.
--- Returns the instant at which to look again (0: more are due now), or nil.
local function promoteDue(base, workflow, now)
  local delayed, most = keyOf(base, workflow, 'delayed'), PROMOTED_LEFT
  local due = redis.call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, most)
  PROMOTED_LEFT = most - #due
  for _, id in ipairs(due) do
    redis.call('ZREM', delayed, id)
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'score', 'holds', 'awaits')
    if record[1] == 'delayed' then
      if record[5] then redis.call('HDEL', keyOf(base, workflow, 'j', id), 'awaits') end
      addWaiting(base, workflow, id, readSpec(record[2]), tonumber(record[3] or nil), record[4])
    end
  end
  if #due == most then return 0 end
  return firstInstant(base, workflow, 'delayed')
end
