--- Redis' time in whole milliseconds since the epoch.
local function readClock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
