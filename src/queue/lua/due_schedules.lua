--- The schedules of some workflows that are due now, a bounded batch.
--- keys: base
--- args: limit, workflows*
--- returns: Redis' now, ms until the next is due (0: there are more | -1: none in sight),
---   due schedules (workflow, id, due, armed, cadence, data, spec, overlap)
--- @include key_of
--- @include read_clock
local base, limit, now = KEYS[1], tonumber(ARGV[1]), readClock()
local found, next = {}, nil
for i = 2, #ARGV do
  local workflow = ARGV[i]
  local due = keyOf(base, workflow, 'due')
  local ids = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit - #found)
  for k = 1, #ids, 2 do
    local fields =
      redis.call('HMGET', keyOf(base, workflow, 'schedule', ids[k]), 'armed', 'cadence', 'data', 'spec', 'overlap')
    if fields[1] then
      found[#found + 1] = { workflow, ids[k], ids[k + 1], fields[1], fields[2], fields[3], fields[4], fields[5] }
    else
      redis.call('ZREM', due, ids[k])
    end
  end
  local first = redis.call('ZRANGEBYSCORE', due, '(' .. string.format('%d', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local instant = tonumber(first[2] or nil)
  if instant and instant < math.huge and (next == nil or instant < next) then next = instant end
end
local again = #found >= limit and 0 or next and next - now or -1
return { now, again, found }
