--- @include anew
--- @include apply_outcome when needed
--- @include beside
--- @include clear_beside
--- @include key_of
--- @include plain
--- @include published_whole
--- @include read_limits
--- @include result_ttl
--- @include say_end when needed
--- @include say_ends

--- Complete the jobs of a workflow that stand in ARGV from `first` to `last` (id, result, nonce), claimed with one token,
--- each as `applyOutcome` does, and in few commands where the claim says all that it takes. Enters a status each into
--- `statuses`. `over`: as `applyOutcome` has it, and the groups whose slots are to be `freed`, by workflow.
local function completeTogether(base, workflow, first, last, token, now, over, statuses)
  local jobs, silent = keyOf(base, workflow, 'j', ''), readLimits(base, workflow).stream == 0
  -- as texts: a number is written anew for each command
  local finished, kept, till = string.format('%.0f', now), tostring(RESULT_TTL), string.format('%.0f', now + RESULT_TTL)
  local active, plain, beside, ids = keyOf(base, workflow, 'active'), PLAIN .. token .. ' ', BESIDE .. token .. ' ', {}
  for i = first, last, 3 do ids[#ids + 1] = ARGV[i] end
  local claims, told, done = redis.call('HMGET', active, unpack(ids)), {}, {}
  local released, ended = over.released[workflow] or {}, over.ended[workflow] or {}
  local before = #released
  over.released[workflow], over.ended[workflow] = released, ended
  for k, id in ipairs(ids) do
    local i, job, claim, status = first + 3 * (k - 1), jobs .. id, claims[k], done[id]
    local result, begins = ARGV[i + 1], silent and claim and string.sub(claim, 1, #plain)
    done[id] = '0'
    if not status and (begins == plain or begins == beside) then
      local anew = redis.call('HSET', job, 'state', 'completed', 'result', result, 'finished', finished) == ANEW
      status = anew and '0' or '1'
      if anew then redis.call('DEL', job) end
    end
    if status == '1' then
      redis.call('PEXPIRE', job, kept)
      if begins == beside then clearBeside(base, workflow, id, kept) end
      local n, m = #released, #ended
      released[n + 1], ended[m + 1], ended[m + 2] = id, till, id
      local more = string.find(claim, ' ', #plain + 1, true)
      local waiters, group = '', ''
      if more then waiters, group = string.match(claim, '^([^\n]*)\n?(.*)$', more + 1) end
      if group ~= '' then
        local freed = over.freed[workflow]
        if freed then freed[#freed + 1] = group else over.freed[workflow] = { group } end
      end
      if waiters ~= '' and #result > PUBLISHED_WHOLE then
        sayEnd(base, waiters, 'completed', workflow, id, result, ARGV[i + 2], true)
      elseif waiters ~= '' then
        local to = told[waiters]
        if to then to[#to + 1] = i else told[waiters] = { i } end
      end
    end
    statuses[#statuses + 1] = status or applyOutcome(base, 'completed', workflow, id, token, result, '', now, over)
  end
  if #released > before then redis.call('HDEL', active, unpack(released, before + 1)) end
  if next(told) then sayEnds(base, workflow, told, first, last) end
end
