--- @include erase_job
--- @include key_of
--- @include parent_keeps

--- Drop a failed job that is not to be kept any longer. A child whose parent may be retried is only taken off the list,
--- unless no failed job is to be kept at all (`all`).
local function dropFailed(base, workflow, id, all)
  redis.call('ZREM', keyOf(base, workflow, 'failed'), id)
  local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'parent', 'kids')
  if all or not parentKeeps(base, record[1], workflow, id) then eraseJob(base, workflow, id, record[2]) end
end
