--- A worker has stopped in good order.
--- keys: base
--- args: worker
--- returns: nothing
--- @include key_of
--- @include note_departure
--- @include read_clock
noteDeparture(KEYS[1], ARGV[1], 'stopped', readClock())
redis.call('UNLINK', keyOf(KEYS[1], nil, '@ctl', ARGV[1]))
-- that of the third stays: its call may still wait behind a pop, and is to come to nothing
for lane = 0, 1 do redis.call('UNLINK', keyOf(KEYS[1], nil, '@receipt', ARGV[1] .. '/' .. lane)) end
