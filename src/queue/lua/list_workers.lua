--- A page of the workers that live, the last seen first, and those that went.
--- keys: base
--- args: ttl, skip, limit
--- returns: living (worker, last seen, about), departed (worker, how, when, about as lines)
--- @include key_of
--- @include read_clock
local base, living = KEYS[1], {}
local seen = redis.call('ZREVRANGEBYSCORE', keyOf(base, nil, 'workers'), '+inf', readClock() - tonumber(ARGV[1]), 'WITHSCORES',
  'LIMIT', ARGV[2], ARGV[3])
for i = 1, #seen, 2 do
  living[#living + 1] = { seen[i], seen[i + 1], redis.call('GET', keyOf(base, nil, '@worker', seen[i])) or '{}' }
end
return { living, redis.call('LRANGE', keyOf(base, nil, 'departures'), 0, -1) }
