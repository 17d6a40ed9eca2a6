--- Change what the failure of a flow's job means to its parent.
--- keys: base
--- args: workflow, id, policy
--- returns: 1 changed | 0 the job waits for no parent of a flow | -1 there is no such job
--- @include key_of
--- @include read_parent
local job = keyOf(KEYS[1], ARGV[1], 'j', ARGV[2])
local record = redis.call('HMGET', job, 'spec', 'parent')
if not record[1] then return -1 end
if not record[2] or readParent(record[2]).barrier ~= '' then return 0 end
redis.call('HSET', job, 'parent', string.match(record[2], '^.*\n') .. ARGV[3])
return 1
