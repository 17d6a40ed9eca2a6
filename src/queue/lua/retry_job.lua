--- Have a job that failed for good run again, from its checkpoints; attempts and stalls count from the start.
--- keys: base
--- args: workflow, id, nonce
--- returns: 1 runnable, or once what was put off is done | 0 it has not failed | -1 there is no such job
--- @include answer_once
--- @include end_descendants
--- @include ended_along
--- @include read_clock
--- @include require_memory
--- @include rerun_job
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[3], function()
  local answer = rerunJob(KEYS[1], ARGV[1], ARGV[2])
  endDescendants(KEYS[1], ENDED_ALONG, readClock())
  return answer
end)
