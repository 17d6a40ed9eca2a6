--- Return the claims whose lease has run out, of all workflows of the namespace, a bounded batch; at most once an
--- interval over the fleet. Where nobody has swept for longer than a lease, Redis may have been away while the workers
--- lived: they get one more lease instead.
--- keys: base
--- args: lease, interval, limit
--- returns: recovered, stalled (`workflow:id` each), how many were cancelled, ms until the next sweep (0: there are more)
--- @include drop_outdated
--- @include expired_claims
--- @include key_of
--- @include lease_again
--- @include read_clock
--- @include recover_claim
--- @include require_memory
--- @include trim_ended
--- @include wake_capped
local WORKFLOWS_AT_ONCE = 200
requireMemory(KEYS[1])
local base, lease, interval, limit = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now, swept = readClock(), keyOf(base, nil, 'swept')
local last = tonumber(redis.call('GET', swept) or nil)
if last and now - last < interval then return { {}, {}, 0, interval - (now - last) } end
local ends = { recovered = {}, stalled = {}, cancelled = {} }
local expired, more, away = expiredClaims(base, limit, now, lease, last and now - last > math.max(lease, interval))
for _, each in ipairs(expired) do
  if away then
    leaseAgain(base, each.workflow, each.id, each.claim, now + lease)
  else
    local ended = recoverClaim(base, each.workflow, each.id, now)
    if ended then table.insert(ends[ended], each.member) end
  end
end
if #expired > 0 then wakeCapped(base, now) end
if not more then
  for _, workflow in ipairs(redis.call('SRANDMEMBER', keyOf(base, nil, 'workflows'), WORKFLOWS_AT_ONCE)) do
    trimEnded(base, workflow, 'completed', now)
    trimEnded(base, workflow, 'cancelled', now)
    dropOutdated(base, workflow, now)
  end
  redis.call('SET', swept, string.format('%d', now))
end
return { ends.recovered, ends.stalled, #ends.cancelled, more and 0 or interval }
