--- Have some of a workflow's failed jobs run again, oldest first.
--- keys: base
--- args: workflow, limit, nonce
--- returns: how many
--- @include answer_once
--- @include end_descendants
--- @include ended_along
--- @include key_of
--- @include read_clock
--- @include require_memory
--- @include rerun_job
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[3], function()
  local ids = redis.call('ZRANGE', keyOf(KEYS[1], ARGV[1], 'failed'), 0, tonumber(ARGV[2]) - 1)
  for _, id in ipairs(ids) do rerunJob(KEYS[1], ARGV[1], id) end
  endDescendants(KEYS[1], ENDED_ALONG, readClock())
  return #ids
end)
