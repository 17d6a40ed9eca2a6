--- Change what a child's failure means to its parent.
--- keys: base
--- args: workflow, id, policy
--- returns: 1 changed | 0 the job is nobody's child | -1 there is no such job
--- @include key_of
local job = keyOf(KEYS[1], ARGV[1], 'j', ARGV[2])
local record = redis.call('HMGET', job, 'state', 'parent')
if not record[1] then return -1 end
if not record[2] then return 0 end
redis.call('HSET', job, 'parent', string.match(record[2], '^.*\n') .. ARGV[3])
return 1
