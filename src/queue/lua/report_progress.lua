--- Say how far a job has come, if the claim is still the token's.
--- keys: base
--- args: workflow, id, token, text
--- returns: 1 said | 0 the claim is lost
--- @include announce
--- @include holds_claim
--- @include key_of
--- @include read_spec
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local job = keyOf(base, workflow, 'j', id)
local record = redis.call('HMGET', job, 'spec', 'watchers')
if not record[1] or not holdsClaim(base, workflow, id, ARGV[3]) then return 0 end
redis.call('HSET', job, 'progress', ARGV[4])
if record[2] then announce(base, workflow, id, readSpec(record[1]).run, 'progress', ARGV[4], record[2]) end
return 1
