--- Create or change a schedule. Unchanged timing keeps the instant it is armed for; what is known of its last fire stays.
--- keys: base
--- args: workflow, schedule, timing, cadence, data, spec, overlap, armed, due
--- returns: 1 created | 0 changed
--- @include arm_clock
--- @include key_of
--- @include read_spec
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local schedule, due = keyOf(base, workflow, 'schedule', id), keyOf(base, workflow, 'due')
local before = redis.call('HMGET', schedule, 'timing', 'paused')
redis.call('HSET', schedule, 'timing', ARGV[3], 'cadence', ARGV[4], 'data', ARGV[5], 'spec', ARGV[6], 'overlap', ARGV[7])
if before[1] ~= ARGV[3] then
  redis.call('HSET', schedule, 'armed', ARGV[8])
  redis.call('ZADD', due, (before[2] or ARGV[9] == '') and 'inf' or ARGV[9], id)
  armClock(base, workflow)
end
-- a copy of the call that created it has created it too
local run = readSpec(ARGV[6]).run
redis.call('HSETNX', schedule, 'made', run)
return redis.call('HGET', schedule, 'made') == run and 1 or 0
