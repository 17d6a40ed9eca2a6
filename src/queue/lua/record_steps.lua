--- Store checkpoints, each only if its claim is still the token's.
--- keys: base
--- args: steps (workflow, id, token, path, text)*
--- returns: a digit a checkpoint: 1 stored | 0 the claim is lost
--- @include beside
--- @include elaborate
--- @include is_claim
--- @include key_of
--- @include mark_claim
--- @include read_claim
local base, statuses = KEYS[1], {}
for i = 1, #ARGV, 5 do
  local claim = readClaim(base, ARGV[i], ARGV[i + 1])
  if isClaim(claim, ARGV[i + 2]) then
    markClaim(base, ARGV[i], ARGV[i + 1], claim, BESIDE)
    redis.call('HSET', keyOf(base, ARGV[i], 'steps', ARGV[i + 1]), ARGV[i + 3], ARGV[i + 4])
    -- only such a one can have stalled before
    if string.sub(claim, 1, 1) == ELABORATE then redis.call('HDEL', keyOf(base, ARGV[i], 'j', ARGV[i + 1]), 'stalls') end
    statuses[#statuses + 1] = '1'
  else
    statuses[#statuses + 1] = '0'
  end
end
return table.concat(statuses)
