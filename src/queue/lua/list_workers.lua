--- The workers that live, and those that went.
--- keys: base
--- args: ttl
--- returns: living (worker, last seen, about), departed (worker, how, when, about as lines)
--- @include key_of
--- @include read_clock
local base, living = KEYS[1], {}
local seen = redis.call('ZRANGEBYSCORE', keyOf(base, nil, 'workers'), readClock() - tonumber(ARGV[1]), '+inf', 'WITHSCORES')
for i = 1, #seen, 2 do
  living[#living + 1] = { seen[i], seen[i + 1], redis.call('GET', keyOf(base, nil, '@worker', seen[i])) or '{}' }
end
return { living, redis.call('LRANGE', keyOf(base, nil, 'departures'), 0, -1) }
