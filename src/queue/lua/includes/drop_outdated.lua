--- @include drop_failed
--- @include key_of
--- @include read_spec
local OUTDATED_AT_ONCE = 100
local OUTDATED_LEFT = OUTDATED_AT_ONCE

--- Drop the failed jobs of a workflow that have been kept for as long as they were to be, a bounded batch a script. What has
--- been retried or removed since, and is still noted, is passed over.
local function dropOutdated(base, workflow, now)
  local outdating = keyOf(base, workflow, 'outdating')
  local outdated = redis.call('ZRANGEBYSCORE', outdating, '-inf', now, 'LIMIT', 0, OUTDATED_LEFT)
  OUTDATED_LEFT = OUTDATED_LEFT - #outdated
  for _, id in ipairs(outdated) do
    redis.call('ZREM', outdating, id)
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'state', 'spec', 'finished')
    if record[1] == 'failed' then
      local age = readSpec(record[2]).keep_failed[2]
      if age > 0 and record[3] + age <= now then dropFailed(base, workflow, id, false) end
    end
  end
end
