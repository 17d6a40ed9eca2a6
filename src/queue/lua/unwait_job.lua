--- A process waits for a job's end no longer.
--- keys: base
--- args: workflow, id, process
--- returns: nothing
--- @include key_of
local job = keyOf(KEYS[1], ARGV[1], 'j', ARGV[2])
local waiters, kept = redis.call('HGET', job, 'waiters'), {}
if not waiters then return end
for process in string.gmatch(waiters, '%S+') do
  if process ~= ARGV[3] then kept[#kept + 1] = process end
end
if #kept > 0 then redis.call('HSET', job, 'waiters', table.concat(kept, ' ')) else redis.call('HDEL', job, 'waiters') end
