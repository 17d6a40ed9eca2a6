--- @include key_of
local FORGOTTEN_AFTER = 60000

--- Remember that the namespace cap keeps a workflow from runnable work (`refused`), or that it does not any more.
--- Who has been served since (`served`) queues up behind the others again.
local function noteRefusal(base, workflow, refused, served, now)
  local capped, seen = keyOf(base, nil, 'capped'), keyOf(base, nil, 'capped:seen')
  if refused then
    if served then redis.call('ZADD', capped, now, workflow) else redis.call('ZADD', capped, 'NX', now, workflow) end
    redis.call('ZADD', seen, now, workflow)
    redis.call('PEXPIRE', capped, FORGOTTEN_AFTER)
    redis.call('PEXPIRE', seen, FORGOTTEN_AFTER)
  elseif redis.call('ZSCORE', capped, workflow) then
    redis.call('ZREM', capped, workflow)
    redis.call('ZREM', seen, workflow)
  end
end
