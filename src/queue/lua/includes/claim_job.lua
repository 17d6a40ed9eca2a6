--- @include fail_expired
--- @include key_of
--- @include read_spec
--- @include read_steps

--- Put one waiting job into a worker's hands; what counts as claimed is for the caller to enter.
--- Returns what the worker gets (id, data, spec, failed attempts, checkpoints), or nil for a job that is not there to
--- claim: gone, or expired before it began, which fails it.
local function claimJob(base, workflow, id, place, token, now)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'state', 'data', 'spec', 'failures', 'started')
  if record[1] ~= 'waiting' then return nil end
  local steps = {}
  if record[5] then
    redis.call('HSET', job, 'state', 'active', 'token', token, 'score', place)
    steps = readSteps(base, workflow, id)
  else
    if string.find(record[3], '"expires"', 1, true) then
      local expiring = keyOf(base, workflow, 'expiring')
      local expiry = redis.call('ZSCORE', expiring, id)
      redis.call('ZREM', expiring, id)
      if expiry and tonumber(expiry) <= now then
        failExpired(base, workflow, id, readSpec(record[3]), now)
        return nil
      end
    end
    redis.call('HSET', job, 'state', 'active', 'token', token, 'score', place, 'started', now)
  end
  return { id, record[2], record[3], record[4] or '0', steps }
end
