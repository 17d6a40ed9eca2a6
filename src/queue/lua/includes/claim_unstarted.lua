--- @include plain_claim
--- @include read_unstarted

--- Put a job into a worker's hands, as `claimJob` does, if it was never started and nothing about it is out of the
--- ordinary; `jobs`: what the keys of records begin with. Returns its claim, or nil where it takes more: nothing was
--- written.
local function claimUnstarted(jobs, index, id, place, group, token, started, claims)
  local data, spec, waiters, parent = readUnstarted(jobs .. id)
  if not spec or string.find(spec, '"expires":', 1, true) then return nil end
  redis.call('HSET', jobs .. id, 'state', 'active', 'started', started)
  local n = #claims
  claims[n + 1], claims[n + 2], claims[n + 3], claims[n + 4] = index, id, data, spec
  return plainClaim(token, place, spec, waiters, parent, group)
end
