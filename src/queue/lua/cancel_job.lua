--- Cancel a job wherever it is. One that runs is marked, and its worker told: it will end as cancelled whatever its
--- attempt ends in.
--- keys: base
--- args: workflow, id, run, reason
--- returns: 1 it is, or will end as, cancelled | 0 it has ended otherwise | -1 there is no such job
--- @include finalize_cancelled
--- @include key_of
--- @include read_clock
--- @include read_spec
--- @include require_memory
--- @include tell_worker
--- @include unplace_job
requireMemory(KEYS[1])
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local job = keyOf(base, workflow, 'j', id)
local record = redis.call('HMGET', job, 'state', 'spec', 'waiters', 'holds', 'token', 'watchers')
local state = record[1]
if not state then return -1 end
local spec = readSpec(record[2])
if ARGV[3] ~= '' and ARGV[3] ~= spec.run then return -1 end
if state == 'cancelled' then return 1 end
if state == 'completed' or state == 'failed' then return 0 end
if state == 'active' then
  if redis.call('HSETNX', job, 'cancel', ARGV[4]) == 1 then
    tellWorker(base, record[5], 'cancel', workflow, id, ARGV[4])
  end
  return 1
end
unplaceJob(base, workflow, id, spec, state, record[4])
finalizeCancelled(base, workflow, id, spec, ARGV[4], readClock(), record[3], record[6])
return 1
