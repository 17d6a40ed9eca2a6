--- @include key_of

--- The answer that a caller's numbered call was given before, as a list of texts; nil for a call not seen yet.
--- An older number than the last one is a late copy that nobody waits for: it changes nothing either.
local function readReceipt(base, caller, number)
  local receipt = redis.call('GET', keyOf(base, nil, '@receipt', caller))
  if not receipt then return nil end
  local known, from = string.match(receipt, '^(%d+)\n()')
  if tonumber(known) < tonumber(number) then return nil end
  local answers = {}
  for line in string.gmatch(string.sub(receipt, from) .. '\n', '([^\n]*)\n') do answers[#answers + 1] = line end
  return answers
end
