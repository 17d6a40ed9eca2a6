--- How many jobs of a workflow are in each state but waiting, and how many members `ready` has.
--- keys: base
--- args: workflow
--- returns: ready, active, delayed, parked, completed, failed, cancelled
--- @include key_of
--- @include read_clock
local base, workflow, now = KEYS[1], ARGV[1], readClock()
local function size(kind) return redis.call('ZCARD', keyOf(base, workflow, kind)) end
local function kept(kind) return redis.call('ZCOUNT', keyOf(base, workflow, kind), now, '+inf') end
return { size('ready'), redis.call('HLEN', keyOf(base, workflow, 'active')), size('delayed'), size('parked'),
  kept('completed'), size('failed'), kept('cancelled') }
