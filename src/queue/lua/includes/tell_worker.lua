--- @include key_of
local CONTROL_TTL = 600000

--- Bring news of a running job to the worker that holds it, which its token names.
local function tellWorker(base, token, what, workflow, id, text)
  local worker = string.match(token, '^(.*):%d+$')
  if not worker then return end
  local control = keyOf(base, nil, '@ctl', worker)
  redis.call('LPUSH', control, table.concat({ what, workflow, id, token, text or '' }, '\n'))
  redis.call('PEXPIRE', control, CONTROL_TTL)
end
