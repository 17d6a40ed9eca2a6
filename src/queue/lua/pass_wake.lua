--- Pass on a wake-up that this worker cannot use; one that stops passes on the instants that it kept as well.
--- keys: base
--- args: workflow, instants (1 | 0)
--- returns: nothing
--- @include arm_clock
--- @include key_of
--- @include pass_on
--- @include read_clock
local base, workflow = KEYS[1], ARGV[1]
passOn(base, workflow, readClock())
if ARGV[2] == '1' and redis.call('EXISTS', keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'expiring'),
  keyOf(base, workflow, 'throttled'), keyOf(base, workflow, 'due')) > 0 then
  armClock(base, workflow)
end
