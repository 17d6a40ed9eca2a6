--- Add jobs. The producer's calls are numbered: a number that was answered before changes nothing.
--- keys: base
--- args: producer, number, jobs (workflow, rest of the spec, at, unique, waiter, dedup, jobs, (id, nonce, data)*)*
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
--- @include spec_text
--- @include write_receipt
local TOGETHER = 200
requireMemory(KEYS[1])
local base, producer, number = KEYS[1], ARGV[1], ARGV[2]
local receipt = readReceipt(base, producer, number)
if receipt then return receipt end
local now, answers, promoted = readClock(), {}, {}
-- simple jobs of one workflow that come after each other
local row, here, of = nil, {}, nil
local function addRow()
  if row and row.ids[1] then addTogether(base, of, row, now, answers) end
  row, here = { ids = {}, nonces = {}, data = {}, like = {} }, {}
end
local at = 3
while at <= #ARGV do
  local workflow, rest, instant, unique, waiter, dedup, jobs = unpack(ARGV, at, at + 6)
  at = at + 7
  -- what has become due before this is runnable before this, whether or not a worker has looked
  if not promoted[workflow] and (firstInstant(base, workflow, 'delayed') or math.huge) <= now then
    promoteDue(base, workflow, now)
  end
  promoted[workflow] = true
  local spec = readSpec(specText('', rest))
  local simple, like = instant == '' and dedup == '' and spec.expires == 0, { rest, unique, waiter, spec }
  if workflow ~= of then addRow() end
  of = workflow
  for i = at, at + 3 * jobs - 1, 3 do
    local id, nonce, data = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    if not simple or here[id] or #row.ids == TOGETHER then addRow() end
    if simple then
      local n = #row.ids + 1
      row.ids[n], row.nonces[n], row.data[n], row.like[n], here[id] = id, nonce, data, like, true
    else
      answers[#answers + 1] = addJob(base, workflow, id, specText(nonce, rest), data, instant, unique, waiter, dedup, now)
    end
  end
  at = at + 3 * jobs
end
addRow()
writeReceipt(base, producer, number, answers)
return answers
