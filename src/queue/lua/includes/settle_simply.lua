--- @include arm_wake
--- @include count_running
--- @include key_of
--- @include plain
--- @include plain_claim
--- @include published_whole
--- @include push
--- @include read_clock
--- @include read_receipt
--- @include read_unstarted
--- @include rest_counter
--- @include result_ttl
--- @include trim_ended
--- @include write_receipt

--- What `settle` does, in few commands, for a call with one completed job or none that claims from one workflow, where
--- nothing about either is out of the ordinary: no groups, limits, delays, expiries, checkpoints, parents or children,
--- nobody who watches. Everything is read before anything is written, and what is written first is refused where the
--- server is out of memory. Returns the answer, or nil where it takes more.
local function settleSimply()
  local commits = #ARGV == 15
  if not commits and #ARGV ~= 7 or commits and (ARGV[6] ~= 'completed' or ARGV[7] ~= ARGV[14]) then return nil end
  local base, number, workflow, room = KEYS[1], ARGV[2], ARGV[#ARGV - 1], math.min(ARGV[4], ARGV[#ARGV])
  local caller = ARGV[1] .. '/' .. string.char(48 + number % 3)
  if readReceipt(base, caller, number) then return nil end
  local id, result, waiters, started = ARGV[11] or '', ARGV[12], '', nil
  local all, own = keyOf(base, nil, ''), keyOf(base, workflow, '')
  local ready, jobs, active = own .. 'ready', own .. 'j:', own .. 'active'
  if redis.call('EXISTS', all .. 'limits', all .. 'cascades', own .. 'limits', own .. 'groups', own .. 'delayed',
    own .. 'expiring', own .. 'throttled') > 0 then
    return nil
  end
  if commits then
    local claim, mine = redis.call('HGET', active, id), PLAIN .. ARGV[8] .. ' '
    if not claim or string.sub(claim, 1, #mine) ~= mine or string.find(claim, '\n', 1, true) or #result > PUBLISHED_WHOLE then
      return nil
    end
    started, waiters = string.match(claim, '^(%d+) %S+ %S+ ?(.*)$', #mine + 1)
  end
  -- one more than is wanted tells whether any is left
  local found, entries, elaborate, now, stamp = redis.call('ZRANGE', ready, 0, room, 'WITHSCORES'), {}, {}, readClock()
  local answer, n = { now, commits and '1' or '', -1, 1 }, 4
  local head = string.format('%s:%s %s %d ', ARGV[1], number, stamp, now + ARGV[3])
  for i = 1, math.min(#found, 2 * room), 2 do
    local next = string.sub(found[i], 3)
    local data, spec, awaited, parent, options = readUnstarted(redis.call('HGETALL', jobs .. next))
    if not spec then return nil end
    answer[n + 1], answer[n + 2], answer[n + 3] = next, data, spec
    entries[i], entries[i + 1], elaborate[i] = next, plainClaim(head, found[i + 1], spec, options, awaited, parent)
    n = n + 3
  end
  if n == 4 then answer[4] = nil end

  if commits then
    -- an instant: Redis makes one of a time to live, for its replicas
    local till = string.format('%d', now + RESULT_TTL)
    redis.call('ZADD', own .. 'completed', till, id)
    if redis.call('PEXPIREAT', jobs .. id, till) == 0 then
      redis.call('ZREM', own .. 'completed', id)
      return nil
    end
    redis.call('HSET', jobs .. id, 'state', 'completed ' .. stamp .. ' ' .. started, 'result', result)
    trimEnded(base, workflow, 'completed', now)
    if waiters ~= '' then push(base, waiters, { 'completed', workflow, id, result, ARGV[13] }) end
  end
  local receipt = { answer[2] }
  for i = 1, #entries, 2 do
    local next = entries[i]
    if elaborate[i] then redis.call('HSET', jobs .. next, 'state', 'active', 'started', stamp) end
    receipt[#receipt + 1] = workflow .. ':' .. next
  end
  if entries[1] then
    redis.call('HSET', active, unpack(entries))
    redis.call('ZREMRANGEBYRANK', ready, 0, #entries / 2 - 1)
  end
  -- behind what was claimed: a key that is empty in between is made anew
  if commits then redis.call('HDEL', active, id) end
  local more = #entries / 2 - (commits and 1 or 0)
  if more ~= 0 then countRunning(base, workflow, more) end
  if found[2 * room + 1] then
    armWake(base, workflow)
  elseif not entries[1] then
    restCounter(base, workflow)
  end
  writeReceipt(base, caller, number, receipt)
  return answer
end
