--- Redis' time in whole milliseconds since the epoch; and the same as a text, which takes longer to make of the number.
local function readClock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] .. string.sub('00000' .. time[2], -6, -4)
end
