--- @include begin_retention
--- @include erase_job
--- @include key_of
--- @include read_spec

--- A child that was kept because its parent was stands for itself from now on; one that has not ended does so anyway.
local function releaseChild(base, workflow, id, now)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'spec', 'kids')
  local state = record[1]
  if state == 'completed' or state == 'cancelled' then
    if redis.call('PTTL', job) >= 0 then return end
    redis.call('UNLINK', keyOf(base, workflow, 'steps', id))
    beginRetention(base, workflow, id, readSpec(record[2]), state, now, record[3])
  elseif state == 'failed' and not redis.call('ZSCORE', keyOf(base, workflow, 'failed'), id) then
    -- there were too many of them already
    eraseJob(base, workflow, id, record[3])
  end
end
