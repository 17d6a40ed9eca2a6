--- @include key_of

--- The answer that a caller's numbered call was given before, as a list of texts; nil for a call not seen yet.
--- An older number than the last one is a late copy that nobody waits for: it changes nothing either.
local function readReceipt(base, caller, number)
  local receipt = redis.call('GET', keyOf(base, nil, '@receipt', caller))
  if not receipt then return nil end
  local answers = {}
  for line in string.gmatch(receipt .. '\n', '([^\n]*)\n') do answers[#answers + 1] = line end
  if tonumber(table.remove(answers, 1)) < tonumber(number) then return nil end
  return answers
end
