--- A process waits for a job's end, or watches it, no longer.
--- keys: base
--- args: workflow, id, role, process
--- returns: nothing
--- @include key_of
local job, role = keyOf(KEYS[1], ARGV[1], 'j', ARGV[2]), ARGV[3]
local entered, kept = redis.call('HGET', job, role), {}
if not entered then return end
for process in string.gmatch(entered, '%S+') do
  if process ~= ARGV[4] then kept[#kept + 1] = process end
end
if #kept > 0 then redis.call('HSET', job, role, table.concat(kept, ' ')) else redis.call('HDEL', job, role) end
