--- Pass on a wake-up that this worker cannot use.
--- keys: base
--- args: workflow
--- returns: nothing
--- @include pass_on
--- @include read_clock
passOn(KEYS[1], ARGV[1], readClock())
