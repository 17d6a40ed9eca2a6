--- Have a job that failed for good run again, from its checkpoints; attempts and stalls count from the start.
--- keys: base
--- args: workflow, id
--- returns: 1 runnable | 0 it has not failed | -1 there is no such job
--- @include require_memory
--- @include rerun_job
requireMemory(KEYS[1])
return rerunJob(KEYS[1], ARGV[1], ARGV[2])
