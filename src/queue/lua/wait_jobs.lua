--- Look whether jobs have ended; have the ends of those that go on pushed to a process.
--- keys: base
--- args: process, jobs (workflow, id, run)*
--- returns: for each job false while it goes on, else state, nonce, text of the end (result, failure or reason);
---   state is 'missing' without a record, 'replaced' when the id has another life than `run` (empty: any).
---   Long texts are not given all at once: where there are fewer answers than jobs, nothing was done for the rest
--- @include look_at_job
local ENOUGH = 1048576
local answers, size = {}, 0
for i = 2, #ARGV, 3 do
  local state, nonce, text = lookAtJob(KEYS[1], ARGV[i], ARGV[i + 1], ARGV[i + 2], 'waiters', ARGV[1])
  answers[#answers + 1] = text and { state, nonce, text } or false
  size = size + #(text or '')
  if size > ENOUGH then break end
end
return answers
