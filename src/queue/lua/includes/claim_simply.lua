--- @include claim_job when needed
--- @include key_of
local UNCLAIMABLE_AT_ONCE = 64

--- Claim up to `room` of a workflow's runnable jobs into `claims` and `claimed`, as `claimReady` does, where no group
--- waits, nothing limits the rate, and no events are written. Returns how many were claimed.
local function claimSimply(base, workflow, index, room, token, lease, now, claims, claimed)
  local ready, jobs = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'j', '')
  local ids, leases, tries, deadline = {}, {}, 0, now + lease
  while #ids < room and tries < room + UNCLAIMABLE_AT_ONCE do
    local popped = redis.call('ZPOPMIN', ready, room - #ids)
    if not popped[1] then break end
    for i = 1, #popped, 2 do
      tries = tries + 1
      local id, place, n = string.sub(popped[i], 3), popped[i + 1], #claims
      local record = redis.call('HMGET', jobs .. id, 'state', 'data', 'spec', 'failures', 'started', 'watchers', 'kids')
      local is = true
      -- as stateOf has it, a job without a state waits
      if record[1] or not record[3] or record[4] or record[5] or record[6] or record[7]
        or string.find(record[3], '"expires":', 1, true) then
        is = claimJob(base, workflow, index, id, place, token, now, true, claims)
      else
        redis.call('HSET', jobs .. id, 'state', 'active', 'token', token, 'score', place, 'started', now)
        claims[n + 1], claims[n + 2], claims[n + 3], claims[n + 4] = index, id, record[2], record[3]
      end
      if is then
        local k = #ids + 1
        local member = workflow .. ':' .. id
        ids[k], leases[2 * k - 1], leases[2 * k], claimed[#claimed + 1] = id, deadline, member, member
      end
    end
  end
  if ids[1] then
    redis.call('SADD', keyOf(base, workflow, 'active'), unpack(ids))
    redis.call('ZADD', keyOf(base, nil, 'active'), unpack(leases))
  end
  return #ids
end
