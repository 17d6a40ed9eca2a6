--- Have everything that happens to a job pushed to a process, and say where it stands.
--- keys: base
--- args: workflow, id, run, process
--- returns: state, nonce, text of the end (empty while it goes on), progress
---   state is 'missing' without a record, 'replaced' when the id has another life than `run` (empty: any)
--- @include look_at_job
local state, nonce, text, progress = lookAtJob(KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'watchers', ARGV[4])
return { state, nonce, text or '', progress }
