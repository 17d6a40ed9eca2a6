--- Do some of what was put off: children end with their parents, jobs are prepared to run again, groups stand in line again.
--- keys: base
--- args: limit
--- returns: how much was done; as much as `limit` means that there may be more
--- @include end_descendants
--- @include read_clock
--- @include require_memory
requireMemory(KEYS[1])
return endDescendants(KEYS[1], tonumber(ARGV[1]), readClock())
