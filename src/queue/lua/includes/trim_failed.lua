--- @include erase_job
--- @include key_of
--- @include parent_keeps
local TRIMMED_AT_ONCE = 100

--- Drop the oldest failed jobs beyond `count` (-1: no bound) and those older than `age` ms (0: no bound). A child whose
--- parent may be retried is only taken off the list, unless no failed job is to be kept at all.
local function trimFailed(base, workflow, count, age, now)
  local failed = keyOf(base, workflow, 'failed')
  local surplus = count >= 0 and redis.call('ZCARD', failed) - count or 0
  local dropped = {}
  if surplus > 0 then
    dropped = redis.call('ZRANGE', failed, 0, math.min(surplus, TRIMMED_AT_ONCE) - 1)
  elseif age > 0 then
    dropped = redis.call('ZRANGEBYSCORE', failed, '-inf', now - age, 'LIMIT', 0, TRIMMED_AT_ONCE)
  end
  for _, id in ipairs(dropped) do
    redis.call('ZREM', failed, id)
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'parent', 'kids')
    if count == 0 or not parentKeeps(base, record[1], workflow, id) then eraseJob(base, workflow, id, record[2]) end
  end
end
