--- @include key_of
local CONTROL_TTL = 600000

--- Bring news of a running job to the worker that holds it, which its claim names (see `enterActive`; false: none does).
local function tellWorker(base, claim, what, workflow, id, text)
  local token, worker = string.match(claim or '', '^.((%S+):%d+) ')
  if not worker then return end
  local control = keyOf(base, nil, '@ctl', worker)
  redis.call('LPUSH', control, table.concat({ what, workflow, id, token, text or '' }, '\n'))
  redis.call('PEXPIRE', control, CONTROL_TTL)
end
