--- Add jobs. The producer's calls are numbered: a number that was answered before changes nothing.
--- keys: base
--- args: producer, number, jobs (workflow, id, spec, data, at, unique, waiter, dedup)*
--- returns: one text a job: empty when added, else nonce, state and id of the job that stands in its place
--- @include add_job
--- @include promote_due
--- @include read_clock
--- @include read_receipt
--- @include require_memory
--- @include write_receipt
requireMemory(KEYS[1])
local base, producer, number = KEYS[1], ARGV[1], ARGV[2]
local receipt = readReceipt(base, producer, number)
if receipt then return receipt end
local now, answers, promoted = readClock(), {}, {}
for i = 3, #ARGV, 8 do
  -- what has become due before this is runnable before this, whether or not a worker has looked
  if not promoted[ARGV[i]] then promoteDue(base, ARGV[i], now) end
  promoted[ARGV[i]] = true
  answers[#answers + 1] = addJob(base, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5],
    ARGV[i + 6], ARGV[i + 7], now)
end
writeReceipt(base, producer, number, answers)
return answers
