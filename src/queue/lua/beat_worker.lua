--- A worker says that it lives and what it does; workers that have not said so for long are noted as lost.
--- keys: base
--- args: worker, about, ttl
--- returns: nothing
--- @include key_of
--- @include note_departure
--- @include read_clock
local base, now, ttl = KEYS[1], readClock(), tonumber(ARGV[3])
local workers = keyOf(base, nil, 'workers')
redis.call('ZADD', workers, now, ARGV[1])
redis.call('SET', keyOf(base, nil, '@worker', ARGV[1]), ARGV[2], 'PX', 10 * ttl)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', now - ttl, 'LIMIT', 0, 50)) do
  noteDeparture(base, worker, 'lost', now)
end
