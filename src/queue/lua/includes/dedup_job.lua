--- @include add_delayed
--- @include key_of
--- @include open_window
--- @include read_spec

--- Deduplicate a job by a key. `throttle ms key`: the first job of a window stands for all that come within it.
--- `debounce ms key`: a job that has not become runnable takes the new payload and waits anew; jobs come together until
--- none has come for the window. Returns what stands in its place (nonce, state, id), or nil: the job is to be added.
local function dedupJob(base, workflow, data, dedup, now)
  local kind, window, key = string.match(dedup, '^(%a+) (%d+) (.*)$')
  local standing = redis.call('GET', keyOf(base, workflow, 'dedup', kind .. ':' .. key))
  if not standing then return nil end
  local run, holder = string.match(standing, '^(%S*) (.*)$')
  local job = keyOf(base, workflow, 'j', holder)
  local record = redis.call('HMGET', job, 'state', 'spec', 'started', 'failures')
  local spec = record[2] and readSpec(record[2]) or {}
  if kind == 'throttle' then return table.concat({ spec.run and run or '', 'throttled', holder }, ' ') end
  -- its id may have been used again
  if spec.run ~= run or record[1] ~= 'delayed' or record[3] or record[4] then return nil end
  redis.call('HSET', job, 'data', data)
  if spec.expires > 0 then
    redis.call('ZADD', keyOf(base, workflow, 'expiring'), now + window + spec.expires, holder)
  end
  addDelayed(base, workflow, holder, now + window)
  openWindow(base, workflow, holder, run, dedup)
  return table.concat({ run, 'debounced', holder }, ' ')
end
