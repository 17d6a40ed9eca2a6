--- @include key_of
local DEPARTURES_KEPT = 50
local DEPARTURES_TTL = 604800000

--- Remember how a worker went (stopped | lost), and what it last said of itself; it is alive no more.
local function noteDeparture(base, worker, how, now)
  local about = redis.call('GET', keyOf(base, nil, '@worker', worker)) or '{}'
  if redis.call('ZREM', keyOf(base, nil, 'workers'), worker) == 0 then return end
  redis.call('UNLINK', keyOf(base, nil, '@worker', worker))
  local departures = keyOf(base, nil, 'departures')
  redis.call('LPUSH', departures, table.concat({ worker, how, string.format('%d', now), about }, '\n'))
  redis.call('LTRIM', departures, 0, DEPARTURES_KEPT - 1)
  redis.call('PEXPIRE', departures, DEPARTURES_TTL)
end
