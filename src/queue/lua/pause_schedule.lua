--- Pause a schedule, or have it go on from an instant.
--- keys: base
--- args: workflow, schedule, paused, armed, due
--- returns: 1 done | 0 there is no such schedule
--- @include arm_clock
--- @include key_of
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local schedule = keyOf(base, workflow, 'schedule', id)
if redis.call('EXISTS', schedule) == 0 then return 0 end
if ARGV[3] == '1' then
  redis.call('HSET', schedule, 'paused', '1')
  redis.call('ZADD', keyOf(base, workflow, 'due'), 'inf', id)
elseif redis.call('HDEL', schedule, 'paused') == 1 then
  redis.call('HSET', schedule, 'armed', ARGV[4])
  redis.call('ZADD', keyOf(base, workflow, 'due'), ARGV[5] == '' and 'inf' or ARGV[5], id)
  armClock(base, workflow)
end
return 1
