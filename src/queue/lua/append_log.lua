--- Write an entry to a job's log, which holds the latest ones, if the claim is still the token's. No two entries are
--- equal, so that writing one twice writes it once.
--- keys: base
--- args: workflow, id, token, entry, most
--- returns: 1 written | 0 the claim is lost
--- @include beside
--- @include is_claim
--- @include key_of
--- @include mark_claim
--- @include read_claim
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local claim = readClaim(base, workflow, id)
if not isClaim(claim, ARGV[3]) then return 0 end
local log = keyOf(base, workflow, 'log', id)
if not redis.call('LPOS', log, ARGV[4], 'RANK', -1) then
  markClaim(base, workflow, id, claim, BESIDE)
  redis.call('RPUSH', log, ARGV[4])
  redis.call('LTRIM', log, -tonumber(ARGV[5]), -1)
end
return 1
