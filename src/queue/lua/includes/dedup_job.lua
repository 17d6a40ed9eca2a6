--- @include add_delayed
--- @include key_of

--- Deduplicate a job by a key. `throttle ms key`: the first job of a window stands for all that come within it.
--- `debounce ms key`: a job that has not become runnable takes the new payload and waits anew; jobs come together until
--- none has come for the window. Returns what stands in its place (nonce, state, id), or nil: the job is to be added.
local function dedupJob(base, workflow, id, data, dedup, now)
  local kind, window, key = string.match(dedup, '^(%a+) (%d+) (.*)$')
  local slot = keyOf(base, workflow, 'dedup', key)
  local holder = redis.call('GET', slot)
  if holder then
    local job = keyOf(base, workflow, 'j', holder)
    local record = redis.call('HMGET', job, 'state', 'spec', 'started', 'failures')
    local run = record[2] and cjson.decode(record[2]).run or ''
    if kind == 'throttle' then return table.concat({ run, 'throttled', holder }, ' ') end
    if record[1] == 'delayed' and not record[3] and not record[4] then
      redis.call('HSET', job, 'data', data)
      addDelayed(base, workflow, holder, now + window)
      redis.call('SET', slot, holder, 'PX', window)
      return table.concat({ run, 'debounced', holder }, ' ')
    end
  end
  redis.call('SET', slot, id, 'PX', window)
  return nil
end
