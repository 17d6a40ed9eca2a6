--- @include key_of
local FORGOTTEN_AFTER = 60000

--- Remember that the namespace cap keeps a workflow from runnable work (`refused`), or that it does not any more.
--- Who has been served since (`served`) queues up behind the others again. `refusals` (as `liveRefusals` gives them, or
--- nil) are brought in line.
local function noteRefusal(base, workflow, refused, served, now, refusals)
  local capped, seen = keyOf(base, nil, 'capped'), keyOf(base, nil, 'capped:seen')
  local entered = nil
  for i, refusal in ipairs(refusals or {}) do
    if refusal.workflow == workflow then entered = i end
  end
  if refused then
    if served then redis.call('ZADD', capped, now, workflow) else redis.call('ZADD', capped, 'NX', now, workflow) end
    redis.call('ZADD', seen, now, workflow)
    redis.call('PEXPIRE', capped, FORGOTTEN_AFTER)
    redis.call('PEXPIRE', seen, FORGOTTEN_AFTER)
  elseif redis.call('ZSCORE', capped, workflow) then
    redis.call('ZREM', capped, workflow)
    redis.call('ZREM', seen, workflow)
  end
  if entered then table.remove(refusals, entered) end
  if refusals and refused then
    local since, place = tonumber(redis.call('ZSCORE', capped, workflow)), 1
    -- in the order of `capped`
    while refusals[place] and (refusals[place].since < since
      or (refusals[place].since == since and refusals[place].workflow < workflow)) do
      place = place + 1
    end
    table.insert(refusals, place, { workflow = workflow, since = since, till = now + refusals.lives })
  end
end
