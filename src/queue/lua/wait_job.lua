--- Look whether a job has ended; if not, have its end pushed to a process.
--- keys: base
--- args: workflow, id, run, process
--- returns: state, nonce, text of the end (result, failure or reason; empty while the job goes on), progress
---   state is 'missing' without a record, 'replaced' when the id has another life than `run` (empty: any)
--- @include look_at_job
return lookAtJob(KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'waiters', ARGV[4])
