--- Pass on a wake-up that this worker cannot use; one that stops passes on the instants that it kept as well, and gives up
--- its place among the workflows that the namespace cap has refused: who asks for the same one takes a new place.
--- keys: base
--- args: workflow, instants (1 | 0)
--- returns: nothing
--- @include arm_clock
--- @include key_of
--- @include note_refusal
--- @include pass_on
--- @include read_clock
local base, workflow, stops, now = KEYS[1], ARGV[1], ARGV[2] == '1', readClock()
if stops then noteRefusal(base, workflow, false, false, now) end
passOn(base, workflow, now)
if stops and redis.call('EXISTS', keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'expiring'),
  keyOf(base, workflow, 'throttled'), keyOf(base, workflow, 'due')) > 0 then
  armClock(base, workflow)
end
