--- @include announce when needed
--- @include elaborate
--- @include emit_event
--- @include enter_claim
--- @include enter_first
--- @include fail_expired when needed
--- @include key_of
--- @include read_spec
--- @include read_steps when needed

--- Put one waiting job into a worker's hands; what counts as claimed is for the caller to enter.
--- `head`: as `plainClaim` has it; `mayStart`: whether a job may start an attempt now; one that goes on with an attempt always may.
--- Enters what the worker gets into `claims`. Returns its claim, and whether an attempt was started; nil for a job that is
--- not there to claim: gone, or expired before it began, which fails it; false for one that may not.
local function claimJob(base, workflow, index, id, place, head, now, mayStart, claims)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'data', 'spec', 'failures', 'started', 'watchers', 'kids')
  -- what stands in line has no claim: without a state it waits (see `stateOf`)
  if record[1] or not record[3] then return nil end
  if record[5] then
    redis.call('HSET', job, 'state', 'active')
  else
    if not mayStart then return false end
    if not record[4] and string.find(record[3], '"expires"', 1, true) then
      local expiring = keyOf(base, workflow, 'expiring')
      local expiry = redis.call('ZSCORE', expiring, id)
      redis.call('ZREM', expiring, id)
      if expiry and tonumber(expiry) <= now then
        failExpired(base, workflow, id, readSpec(record[3]), now)
        return nil
      end
    end
    redis.call('HSET', job, 'state', 'active', 'started', now)
    if record[6] then announce(base, workflow, id, readSpec(record[3]).run, 'started', record[4] or '0', record[6]) end
    emitEvent(base, workflow, 'started', id)
  end
  -- a first attempt has no checkpoints to read, but what its children left there
  if record[4] or record[5] or record[7] then
    enterClaim(claims, index, id, record[2], record[3], record[4] or '0', readSteps(base, workflow, id))
  else
    enterFirst(claims, index, id, record[2], record[3])
  end
  -- at once: a child of it may end in this very call, and its worker is told by its claim
  local claim = ELABORATE .. head .. place
  redis.call('HSET', keyOf(base, workflow, 'active'), id, claim)
  return claim, not record[5]
end
