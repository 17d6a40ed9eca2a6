--- @include arm_wake
--- @include key_of
--- @include push
--- @include read_clock
--- @include read_receipt
--- @include rest_counter
--- @include trim_ended
--- @include write_receipt
local RESULT_TTL = 300000
local PUBLISHED_WHOLE = 16384

--- What `settle` does, in few commands, for a call with one completed job or none that claims from one workflow, where
--- nothing about either is out of the ordinary: no groups, limits, delays, expiries, checkpoints, parents or children,
--- nobody who watches. Everything is read before anything is written, and what is written first is refused where the
--- server is out of memory. Returns the answer, or nil where it takes more.
local function settleSimply()
  local commits = #ARGV == 14
  if not commits and #ARGV ~= 7 or commits and (ARGV[6] ~= 'completed' or ARGV[7] ~= ARGV[13]) then return nil end
  local base, number, workflow = KEYS[1], ARGV[2], ARGV[#ARGV - 1]
  local caller = ARGV[1] .. '/' .. number % 3
  if readReceipt(base, caller, number) then return nil end
  local ready, jobs, active = keyOf(base, workflow, 'ready'), keyOf(base, workflow, 'j', ''), keyOf(base, workflow, 'active')
  if redis.call('EXISTS', keyOf(base, nil, 'limits'), keyOf(base, nil, 'cascades'), keyOf(base, workflow, 'limits'),
    keyOf(base, workflow, 'groups'), keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'expiring'),
    keyOf(base, workflow, 'throttled')) > 0 then
    return nil
  end
  local id, result, waiters, run = ARGV[11], ARGV[12], nil, nil
  if commits then
    local record = redis.call('HMGET', jobs .. id, 'token', 'spec', 'waiters', 'cancel', 'watchers', 'parent', 'kids')
    local spec = record[2]
    if record[1] ~= ARGV[8] or record[4] or record[5] or record[6] or record[7] or string.find(spec, '"group":', 1, true)
      or string.find(spec, '"result_ttl":', 1, true) or #result > PUBLISHED_WHOLE or redis.call('EXISTS',
        keyOf(base, workflow, 'steps', id), keyOf(base, workflow, 'events', id), keyOf(base, workflow, 'log', id)) > 0 then
      return nil
    end
    waiters, run = record[3], string.match(spec, '"run":"([^"]*)"')
  end
  local room, found, claims = math.min(ARGV[4], ARGV[#ARGV]), {}, {}
  if room > 0 then found = redis.call('ZRANGE', ready, 0, room - 1, 'WITHSCORES') end
  for i = 1, #found, 2 do
    local next, n = string.sub(found[i], 3), #claims
    local record = redis.call('HMGET', jobs .. next, 'state', 'data', 'spec', 'failures', 'started', 'watchers', 'kids')
    -- as stateOf has it, a job without a state waits
    if record[1] or not record[3] or record[4] or record[5] or record[6] or record[7] then return nil end
    claims[n + 1], claims[n + 2], claims[n + 3], claims[n + 4] = 1, next, record[2], record[3]
  end

  local now, token, answers = readClock(), ARGV[1] .. ':' .. number, { commits and '1' or '' }
  if commits then
    redis.call('HSET', jobs .. id, 'state', 'completed', 'result', result, 'token', '', 'finished', now)
    redis.call('PEXPIRE', jobs .. id, RESULT_TTL)
    redis.call('SREM', active, id)
    redis.call('ZREM', keyOf(base, nil, 'active'), workflow .. ':' .. id)
    redis.call('ZADD', keyOf(base, workflow, 'completed'), now + RESULT_TTL, id)
    trimEnded(base, workflow, 'completed', now)
    if waiters then push(base, waiters, { 'completed', workflow, id, run, result }) end
  end
  for i = 2, #claims, 4 do
    local next = claims[i]
    redis.call('HSET', jobs .. next, 'state', 'active', 'token', token, 'score', found[i / 2 + 1], 'started', now)
    redis.call('SADD', active, next)
    redis.call('ZADD', keyOf(base, nil, 'active'), now + ARGV[3], workflow .. ':' .. next)
    answers[#answers + 1] = workflow .. ':' .. next
  end
  if claims[1] then redis.call('ZPOPMIN', ready, #claims / 4) end
  if redis.call('EXISTS', ready) == 1 then
    armWake(base, workflow)
  elseif not claims[1] then
    restCounter(base, workflow)
  end
  writeReceipt(base, caller, number, answers)
  return { now, answers[1], claims, -1 }
end
