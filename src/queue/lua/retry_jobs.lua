--- Have some of a workflow's failed jobs run again, oldest first.
--- keys: base
--- args: workflow, limit, nonce
--- returns: how many
--- @include answer_once
--- @include key_of
--- @include require_memory
--- @include rerun_job
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[3], function()
  local ids = redis.call('ZRANGE', keyOf(KEYS[1], ARGV[1], 'failed'), 0, tonumber(ARGV[2]) - 1)
  for _, id in ipairs(ids) do rerunJob(KEYS[1], ARGV[1], id) end
  return #ids
end)
