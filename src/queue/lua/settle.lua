--- Commit the outcomes of finished attempts and claim jobs for the free slots. A worker's calls are numbered: the same
--- number again changes nothing and is answered from the receipt, which is kept until the number that is three more comes.
--- keys: base
--- args: worker, number, lease, total, outcomes: count, (kind, workflow, id, token, text, number)*; wants (workflow, most)*
--- returns: Redis' now, a digit an outcome (1 applied | 0 claim lost), claims (index in wants, id, data, spec,
---   failed attempts, checkpoints or false), ms until there may be more to claim (0: at once | -1: nothing in sight)
--- @include apply_outcome
--- @include end_descendants when needed
--- @include enter_completed
--- @include key_of
--- @include look_ahead
--- @include pass_on when needed
--- @include push
--- @include read_clock
--- @include read_limits
--- @include read_receipt
--- @include read_steps when needed
--- @include release_active
--- @include require_memory
--- @include reserve
--- @include rest_counter
--- @include wake_capped when needed
--- @include write_receipt
local ENDED_ALONG = 50
requireMemory(KEYS[1])
local base, worker, number, lease, total = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, token, last = readClock(), worker .. ':' .. number, 5 + 6 * tonumber(ARGV[5])
local wants = {}
for i = last + 1, #ARGV, 2 do
  wants[#wants + 1] = { ARGV[i], tonumber(ARGV[i + 1]) }
end

local caller = worker .. '/' .. number % 3
local receipt = readReceipt(base, caller, number)
if receipt then
  local claims, indexes = {}, {}
  for i, want in ipairs(wants) do indexes[want[1]] = i end
  for i = 2, #receipt do
    local workflow, id = string.match(receipt[i], '^([^:]*):(.*)$')
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'token', 'data', 'spec', 'failures')
    if record[1] == token then
      claims[#claims + 1] =
        { indexes[workflow], id, record[2], record[3], record[4] or '0', readSteps(base, workflow, id) }
    end
  end
  -- a late copy may have come behind a pop that took a wake-up with it
  for _, want in ipairs(wants) do passOn(base, want[1], now) end
  return { now, receipt[1], claims, 0 }
end

local statuses, over = {}, { released = {}, ended = {}, pushed = {} }
for i = 6, last, 6 do
  statuses[#statuses + 1] =
    applyOutcome(base, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], now, over)
end
releaseActive(base, over.released)
enterCompleted(base, over.ended, now)
for processes, said in pairs(over.pushed) do push(base, processes, said) end
-- before anything is claimed: what ends with its parent is not to begin
local follow, due = lookAhead(base, wants)
local more = follow and endDescendants(base, ENDED_ALONG, now) == ENDED_ALONG
local claims, again, busy = reserve(base, token, lease, total, wants, due, now)
if more then again = now end
if readLimits(base).concurrency < math.huge then wakeCapped(base, now) end
for i = 7, last, 6 do busy[ARGV[i]] = busy[ARGV[i]] or false end
for workflow, is in pairs(busy) do
  if not is then restCounter(base, workflow) end
end
local answers = { table.concat(statuses) }
for _, claim in ipairs(claims) do answers[#answers + 1] = wants[claim[1]][1] .. ':' .. claim[2] end
writeReceipt(base, caller, number, answers)
return { now, answers[1], claims, again and math.max(again - now, 0) or -1 }
