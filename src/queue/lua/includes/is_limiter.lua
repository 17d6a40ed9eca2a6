local function isWhole(number)
  return type(number) == 'number' and number >= 1 and number <= 9007199254740991 and math.floor(number) == number
end

--- Is it a limiter as it is declared: limit, window in ms, and 1 where each group has a budget of its own (else 0)?
local function isLimiter(limiter)
  return type(limiter) == 'table' and #limiter == 3 and isWhole(limiter[1]) and isWhole(limiter[2])
    and (limiter[3] == 0 or limiter[3] == 1)
end
