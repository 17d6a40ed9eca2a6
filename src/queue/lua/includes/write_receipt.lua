--- @include key_of
local RECEIPT_TTL = 120000

--- Keep the answer (texts without line breaks) of a caller's numbered call, for a copy of the call.
local function writeReceipt(base, caller, number, answers)
  redis.call('SET', keyOf(base, nil, '@receipt', caller), number .. '\n' .. table.concat(answers, '\n'), 'PX',
    RECEIPT_TTL)
end
