--- Cancel a job wherever it is. One that runs will end as cancelled, whatever its attempt ends in.
--- keys: base
--- args: workflow, id, run, reason, nonce
--- returns: 1 it is, or will end as, cancelled | 0 it has ended otherwise | -1 there is no such job
--- @include answer_once
--- @include end_job
--- @include read_clock
--- @include require_memory
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[5], function()
  return endJob(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], readClock())
end)
