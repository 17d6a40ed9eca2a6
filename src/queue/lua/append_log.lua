--- Write a line to a job's log, which holds the latest ones, if the claim is still the token's.
--- keys: base
--- args: workflow, id, token, line, most
--- returns: 1 written | 0 the claim is lost
--- @include holds_claim
--- @include key_of
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
if not holdsClaim(base, workflow, id, ARGV[3]) then return 0 end
local log = keyOf(base, workflow, 'log', id)
redis.call('RPUSH', log, ARGV[4])
redis.call('LTRIM', log, -tonumber(ARGV[5]), -1)
return 1
