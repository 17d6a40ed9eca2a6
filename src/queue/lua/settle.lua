--- Commit the outcomes of finished attempts and claim jobs for the free slots. A worker's calls are numbered: the same
--- number again changes nothing and is answered from the receipt, which is kept until the number that is three more comes.
--- keys: base
--- args: worker, number, lease, total, outcomes: runs, (kind, workflow, token, number, jobs, (id, text, nonce)*)*; wants (workflow, most)*
---   a run has a job once
--- returns: Redis' now, a digit an outcome (1 applied | 0 claim lost | 2 as 1, older failed jobs were dropped), ms until
---   there may be more to claim (0: at once | -1: nothing in sight), claims (index in wants, (id, data, spec)*;
---   with a negative index: index, id, data, spec, failed attempts, checkpoints or false)*
--- @include settle_simply
local simply = settleSimply()
if simply then return simply end
--- @include apply_outcome when needed
--- @include assume_no_limits
--- @include complete_together
--- @include count_running
--- @include end_descendants when needed
--- @include ended_along
--- @include enter_claim when needed
--- @include enter_completed
--- @include holds_claim when needed
--- @include key_of
--- @include look_ahead
--- @include pass_on when needed
--- @include read_clock
--- @include read_limits
--- @include read_receipt
--- @include read_steps when needed
--- @include release_groups
--- @include require_memory
--- @include reserve
--- @include rest_counter when needed
--- @include wake_capped when needed
--- @include write_receipt
requireMemory(KEYS[1])
local base, worker, number, lease, total = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, token, at = readClock(), worker .. ':' .. number, 6
local runs, wants = {}, {}
for i = 1, tonumber(ARGV[5]) do
  runs[i], at = at, at + 5 + 3 * ARGV[at + 4]
end
for i = at, #ARGV, 2 do
  wants[#wants + 1] = { ARGV[i], tonumber(ARGV[i + 1]) }
end

local caller = worker .. '/' .. number % 3
local receipt = readReceipt(base, caller, number)
if receipt then
  local answer, indexes = { now, receipt[1], 0 }, {}
  for i, want in ipairs(wants) do indexes[want[1]] = i end
  for i = 2, #receipt do
    local workflow, id = string.match(receipt[i], '^([^:]*):(.*)$')
    if holdsClaim(base, workflow, id, token) then
      local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'data', 'spec', 'failures')
      if record[2] then
        enterClaim(answer, indexes[workflow], id, record[1], record[2], record[3] or '0', readSteps(base, workflow, id))
      end
    end
  end
  -- a late copy may have come behind a pop that took a wake-up with it
  for _, want in ipairs(wants) do passOn(base, want[1], now) end
  return answer
end

assumeNoLimits(base, wants)
local statuses, over, busy = {}, { released = {}, freed = {}, ended = {} }, {}
for _, run in ipairs(runs) do
  local kind, workflow, from, number = unpack(ARGV, run, run + 3)
  busy[workflow] = false
  local first, last = run + 5, run + 4 + 3 * ARGV[run + 4]
  if kind == 'completed' then
    completeTogether(base, workflow, first, last, from, now, over, statuses)
  else
    for i = first, last, 3 do
      statuses[#statuses + 1] = applyOutcome(base, kind, workflow, ARGV[i], from, ARGV[i + 1], number, now, over)
    end
  end
end
for workflow, number in pairs(over.released) do countRunning(base, workflow, -number) end
releaseGroups(base, over.freed)
enterCompleted(base, over.ended, now)
-- before anything is claimed: what ends with its parent is not to begin
local follow, due = lookAhead(base, wants)
local more = follow and endDescendants(base, ENDED_ALONG, now) == ENDED_ALONG
local answer = { now, table.concat(statuses), 0 }
local claimed, again = reserve(base, token, lease, total, wants, due, now, busy, answer)
if more then again = now end
if readLimits(base).concurrency < math.huge then wakeCapped(base, now) end
for workflow, is in pairs(busy) do
  if not is then restCounter(base, workflow) end
end
writeReceipt(base, caller, number, { answer[2], unpack(claimed) })
answer[3] = again and math.max(again - now, 0) or -1
return answer
