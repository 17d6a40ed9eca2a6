--- Have a worker's blocking pop end.
--- keys: base
--- args: worker
--- returns: nothing
--- @include key_of
local NUDGE_TTL = 60000
local control = keyOf(KEYS[1], nil, '@ctl', ARGV[1])
redis.call('LPUSH', control, 'nudge')
redis.call('PEXPIRE', control, NUDGE_TTL)
