--- Have a job that failed for good run again, from its checkpoints; attempts and stalls count from the start.
--- keys: base
--- args: workflow, id, nonce
--- returns: 1 runnable | 0 it has not failed | -1 there is no such job
--- @include answer_once
--- @include require_memory
--- @include rerun_job
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[3], function() return rerunJob(KEYS[1], ARGV[1], ARGV[2]) end)
