--- @include key_of

--- Close a limiter for everybody until an instant; a pause never shortens an earlier one.
local function pauseLimiter(base, name, instant, now)
  local pause = keyOf(base, nil, '@limiter-pause', name)
  if tonumber(redis.call('GET', pause) or '0') < instant then
    redis.call('SET', pause, string.format('%d', instant), 'PX', instant - now + 1)
  end
end
