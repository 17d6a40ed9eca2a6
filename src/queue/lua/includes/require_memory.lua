--- @include key_of

--- Fail before anything is written where the server is out of memory. It decides that when a script starts, and refuses
--- some commands only: without this, a script could stop after its first deletions.
local function requireMemory(base)
  redis.call('HSETNX', keyOf(base, nil, 'meta'), 'version', '1')
end
