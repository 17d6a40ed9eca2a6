--- @include key_of

--- Fail before anything is written where the server is out of memory. It refuses the first write of a script that may take
--- memory, and nothing after a deletion: without this, a script that begins with one would go on to add.
local function requireMemory(base)
  redis.call('HSETNX', keyOf(base, nil, 'meta'), 'version', '1')
end
