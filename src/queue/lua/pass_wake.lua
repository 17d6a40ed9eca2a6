--- Pass on a wake-up that this worker cannot use.
--- keys: base
--- args: workflow
--- returns: nothing
--- @include arm_wake
--- @include key_of
if redis.call('EXISTS', keyOf(KEYS[1], ARGV[1], 'ready')) == 1 then armWake(KEYS[1], ARGV[1]) end
