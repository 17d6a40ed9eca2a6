--- Fire a schedule, if it is still due when its worker found it: one fire happens once over any number of workers.
--- `overlap`: skip (while the job of the last fire lives) | allow | cancel (that job).
--- keys: base
--- args: workflow, schedule, found, armed, due, fired, overlap, jobs (id, spec, data)*
--- returns: jobs added, or -1: somebody else has fired it
--- @include add_job
--- @include end_job
--- @include key_of
--- @include read_clock
--- @include read_state
--- @include require_memory
requireMemory(KEYS[1])
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local schedule, due, now = keyOf(base, workflow, 'schedule', id), keyOf(base, workflow, 'due'), readClock()
if redis.call('ZSCORE', due, id) ~= ARGV[3] then return -1 end
redis.call('ZADD', due, ARGV[5] == '' and 'inf' or ARGV[5], id)
redis.call('HSET', schedule, 'armed', ARGV[4])
if #ARGV < 8 then return 0 end
redis.call('HSET', schedule, 'last_instant', ARGV[6], 'last_fire', now)
redis.call('HINCRBY', schedule, 'fires', 1)
local last = redis.call('HGET', schedule, 'last_job')
local state = last and readState(base, workflow, last)
local lives = state == 'waiting' or state == 'delayed' or state == 'parked' or state == 'active'
if lives and ARGV[7] == 'skip' then
  redis.call('HINCRBY', schedule, 'skipped', 1)
  return 0
end
if lives and ARGV[7] == 'cancel' then endJob(base, workflow, last, '', 'the schedule fired again', now) end
local added = 0
for i = 8, #ARGV, 3 do
  addJob(base, workflow, ARGV[i], ARGV[i + 1], ARGV[i + 2], '', 'live', '', '', now)
  redis.call('HSET', schedule, 'last_job', ARGV[i])
  added = added + 1
end
return added
