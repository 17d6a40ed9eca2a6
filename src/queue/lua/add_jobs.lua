--- Add jobs. The producer's calls are numbered: a number that was answered before changes nothing.
--- keys: base
--- args: producer, number, jobs (workflow, id, spec, data, at, unique, waiter, dedup)*
--- returns: one text a job: empty when added, else nonce, state and id of the job that stands in its place
--- @include add_simply
local simply = addSimply()
if simply then return simply end
--- @include add_job when needed
--- @include add_together
--- @include first_instant
--- @include promote_due when needed
--- @include read_clock
--- @include read_receipt
--- @include read_spec
--- @include require_memory
--- @include write_receipt
local TOGETHER = 200
requireMemory(KEYS[1])
local base, producer, number = KEYS[1], ARGV[1], ARGV[2]
local receipt = readReceipt(base, producer, number)
if receipt then return receipt end
local now, answers, promoted = readClock(), {}, {}
-- simple jobs of one workflow that come after each other
local row, ids, workflow = {}, {}, nil
local function addRow()
  if #row > 0 then addTogether(base, workflow, row, now, answers) end
  row, ids = {}, {}
end
for i = 3, #ARGV, 8 do
  local id, text, data, at, unique, waiter, dedup = unpack(ARGV, i + 1, i + 7)
  -- what has become due before this is runnable before this, whether or not a worker has looked
  if not promoted[ARGV[i]] and (firstInstant(base, ARGV[i], 'delayed') or math.huge) <= now then
    promoteDue(base, ARGV[i], now)
  end
  promoted[ARGV[i]] = true
  local spec = readSpec(text)
  local simple = at == '' and dedup == '' and spec.expires == 0
  if not simple or ARGV[i] ~= workflow or ids[id] or #row == TOGETHER then addRow() end
  workflow = ARGV[i]
  if simple then
    row[#row + 1], ids[id] = { id, text, data, unique, waiter, spec }, true
  else
    answers[#answers + 1] = addJob(base, workflow, id, text, data, at, unique, waiter, dedup, now)
  end
end
addRow()
writeReceipt(base, producer, number, answers)
return answers
