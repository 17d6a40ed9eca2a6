--- Renew the leases of a worker's claims.
--- keys: base
--- args: lease, claims (workflow, id, token)*
--- returns: a digit a claim: 1 renewed | 0 lost | 2 renewed, and its cancellation has been asked for
--- @include elaborate
--- @include is_claim
--- @include key_of
--- @include lease_again
--- @include read_claim
--- @include read_clock
local base, deadline = KEYS[1], readClock() + tonumber(ARGV[1])
local statuses = {}
for i = 2, #ARGV, 3 do
  local claim = readClaim(base, ARGV[i], ARGV[i + 1])
  local held = isClaim(claim, ARGV[i + 2])
  if held then leaseAgain(base, ARGV[i], ARGV[i + 1], claim, deadline) end
  local cancelled = held and string.sub(claim, 1, 1) == ELABORATE
    and redis.call('HEXISTS', keyOf(base, ARGV[i], 'j', ARGV[i + 1]), 'cancel') == 1
  statuses[#statuses + 1] = not held and '0' or cancelled and '2' or '1'
end
return table.concat(statuses)
