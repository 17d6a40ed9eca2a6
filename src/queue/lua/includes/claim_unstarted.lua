--- @include enter_first
--- @include plain_claim
--- @include read_unstarted

--- Put a job into a worker's hands, as `claimJob` does, if it was never started and nothing about it is out of the
--- ordinary; `record`: all of what is at its key, `job`; `head`: as `plainClaim` has it. Returns its claim, or nil where it
--- takes more: nothing was written.
local function claimUnstarted(job, record, index, id, place, group, head, started, claims)
  local data, spec, waiters, parent, options = readUnstarted(record)
  if not spec or options and string.find(spec, '"expires":', 1, true) then return nil end
  local claim, elaborate = plainClaim(head, place, spec, options, waiters, parent, group)
  if elaborate then redis.call('HSET', job, 'state', 'active', 'started', started) end
  enterFirst(claims, index, id, data, spec)
  return claim
end
