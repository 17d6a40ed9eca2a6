--- Have a job that waits for an instant run now.
--- keys: base
--- args: workflow, id, nonce
--- returns: 1 runnable | 0 it does not wait for an instant | -1 there is no such job
--- @include answer_once
--- @include read_state
--- @include require_memory
--- @include wake_from_sleep
requireMemory(KEYS[1])
return answerOnce(KEYS[1], ARGV[3], function()
  local state = readState(KEYS[1], ARGV[1], ARGV[2])
  if not state then return -1 end
  if state ~= 'delayed' then return 0 end
  wakeFromSleep(KEYS[1], ARGV[1], ARGV[2])
  return 1
end)
