--- Send an event to a job that has not ended; one that waits for it goes on, a running one is told.
--- A sender's id counts once.
--- keys: base
--- args: workflow, id, name, sender, text
--- returns: 1 kept | 0 the job has ended | -1 there is no such job
--- @include beside
--- @include key_of
--- @include mark_claim
--- @include read_claim
--- @include require_memory
--- @include state_of
--- @include tell_worker
--- @include wake_from_sleep
requireMemory(KEYS[1])
local base, workflow, id, name, sender = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local job = keyOf(base, workflow, 'j', id)
local record = redis.call('HMGET', job, 'state', 'spec', 'awaits', 'seen')
local state = stateOf(base, workflow, id, record[1], record[2])
if not state then return -1 end
if state == 'completed' or state == 'failed' or state == 'cancelled' then return 0 end
local seen = record[4] or ''
if string.find(seen, '\n' .. sender .. '\n', 1, true) then return 1 end
local events = keyOf(base, workflow, 'events', id)
local last = redis.call('ZREVRANGEBYLEX', events, '(' .. name .. '\n\255', '[' .. name .. '\n', 'LIMIT', 0, 1)[1]
local place = (last and tonumber(string.match(last, '^[^\n]*\n(%d+)\n')) or 0) + 1
redis.call('ZADD', events, 0, table.concat({ name, string.format('%016.0f', place), sender, ARGV[5] }, '\n'))
redis.call('HSET', job, 'seen', '\n' .. sender .. string.sub(seen == '' and '\n' or seen, 1, 4000))
if state == 'active' then
  local claim = readClaim(base, workflow, id)
  markClaim(base, workflow, id, claim, BESIDE)
  tellWorker(base, claim, 'event', workflow, id, name)
elseif record[3] and string.find('\n' .. record[3] .. '\n', '\n' .. name .. '\n', 1, true) then
  wakeFromSleep(base, workflow, id)
end
return 1
