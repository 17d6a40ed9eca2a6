--- Commit the outcomes of finished attempts and claim jobs for the free slots. A worker's calls are numbered: the same
--- number again changes nothing and is answered from the receipt, which is kept until the next even, or odd, number comes.
--- keys: base
--- args: worker, number, lease, total, outcomes: count, (kind, workflow, id, token, text, number)*; wants (workflow, most)*
--- returns: Redis' now, a digit an outcome (1 applied | 0 claim lost), claims (index in wants, id, data, spec,
---   failed attempts, checkpoints or false), ms until there may be more to claim (0: at once | -1: nothing in sight)
--- @include apply_outcome
--- @include end_descendants
--- @include key_of
--- @include read_clock
--- @include read_receipt
--- @include read_steps
--- @include require_memory
--- @include reserve
--- @include rest_counter
--- @include trim_ended
--- @include wake_capped
--- @include write_receipt
local ENDED_ALONG = 50
requireMemory(KEYS[1])
local base, worker, number, lease, total = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, token, last = readClock(), worker .. ':' .. number, 5 + 6 * tonumber(ARGV[5])
local wants, indexes = {}, {}
for i = last + 1, #ARGV, 2 do
  wants[#wants + 1] = { ARGV[i], tonumber(ARGV[i + 1]) }
  indexes[ARGV[i]] = #wants
end

local caller = worker .. '/' .. number % 2
local receipt = readReceipt(base, caller, number)
if receipt then
  local claims = {}
  for i = 2, #receipt do
    local workflow, id = string.match(receipt[i], '^([^:]*):(.*)$')
    local record = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'token', 'data', 'spec', 'failures')
    if record[1] == token then
      claims[#claims + 1] =
        { indexes[workflow], id, record[2], record[3], record[4] or '0', readSteps(base, workflow, id) }
    end
  end
  return { now, receipt[1], claims, 0 }
end

local statuses = {}
for i = 6, last, 6 do
  statuses[#statuses + 1] =
    applyOutcome(base, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], now)
end
-- before anything is claimed: what ends with its parent is not to begin
local more = endDescendants(base, ENDED_ALONG, now) == ENDED_ALONG
local claims, again = reserve(base, token, lease, total, wants, now)
if more then again = now end
wakeCapped(base, now)
if last > 5 then
  local seen = {}
  for i = 7, last, 6 do
    if not seen[ARGV[i]] then
      seen[ARGV[i]] = true
      restCounter(base, ARGV[i])
      trimEnded(base, ARGV[i], now)
    end
  end
end
local answers = { table.concat(statuses) }
for _, claim in ipairs(claims) do answers[#answers + 1] = wants[claim[1]][1] .. ':' .. claim[2] end
writeReceipt(base, caller, number, answers)
return { now, answers[1], claims, again and math.max(again - now, 0) or -1 }
