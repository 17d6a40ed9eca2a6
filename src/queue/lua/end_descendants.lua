--- End some of the jobs whose parents were cancelled or removed.
--- keys: base
--- args: limit
--- returns: how many were ended; as many as `limit` means that there may be more
--- @include end_descendants
--- @include read_clock
--- @include require_memory
requireMemory(KEYS[1])
return endDescendants(KEYS[1], tonumber(ARGV[1]), readClock())
