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
--- `statuses`, several in a text. `over`: as `applyOutcome` has it, and the groups whose slots are to be `freed`, by workflow.
local function completeTogether(base, workflow, first, last, token, now, over, statuses)
  -- what each turn needs is not to be found anew in each
  local call, sub, find, args = redis.call, string.sub, string.find, ARGV
  local jobs, silent = keyOf(base, workflow, 'j', ''), readLimits(base, workflow).stream == 0
  -- as texts: a number is written anew for each command
  local completed, kept = string.format('completed %d ', now), tostring(RESULT_TTL)
  local till = string.format('%d', now + RESULT_TTL)
  local active, plain, beside, ids = keyOf(base, workflow, 'active'), PLAIN .. token .. ' ', BESIDE .. token .. ' ', {}
  for i = first, last, 3 do ids[#ids + 1] = args[i] end
  local claims, told, ran, behind = call('HMGET', active, unpack(ids)), {}, nil, nil
  local released, ended = {}, over.ended[workflow] or {}
  local n, m, done, freed, same, to = 0, #ended, 0, nil, nil, nil
  over.ended[workflow] = ended
  for at, id in ipairs(ids) do
    local i, job, claim = first + 3 * (at - 1), jobs .. id, claims[at]
    local result, begins = args[i + 1], silent and claim and sub(claim, 1, #plain)
    if begins ~= plain and begins ~= beside then
      local status = applyOutcome(base, 'completed', workflow, id, token, result, '', now, over)
      statuses[#statuses + 1], done = string.rep('1', done) .. status, 0
      m = #ended
    elseif call('PEXPIREAT', job, till) == 0 then
      -- there is no record
      statuses[#statuses + 1], done = string.rep('1', done) .. '0', 0
    else
      done = done + 1
      if not ran then
        -- what has one token was claimed at one instant
        local started = string.match(claim, '^%d+', #plain + 1)
        -- and their deadlines have as many digits
        ran, behind = completed .. started, find(claim, ' ', #plain + #started + 2, true) + 1
      end
      call('HSET', job, 'state', ran, 'result', result)
      if begins == beside then clearBeside(base, workflow, id, kept) end
      released[n + 1], ended[m + 1], ended[m + 2] = id, till, id
      n, m = n + 1, m + 2
      local more = find(claim, ' ', behind, true)
      if more then
        local line = find(claim, '\n', more, true)
        if line then
          if not freed then
            freed = over.freed[workflow] or {}
            over.freed[workflow] = freed
          end
          freed[#freed + 1] = sub(claim, line + 1)
        end
        local waiters = line ~= more + 1 and sub(claim, more + 1, line and line - 1 or -1)
        if waiters and #result > PUBLISHED_WHOLE then
          sayEnd(base, waiters, 'completed', workflow, id, result, args[i + 2], true)
        elseif waiters then
          -- most often all have the same
          if waiters ~= same then
            same, to = waiters, told[waiters] or {}
            told[waiters] = to
          end
          to[#to + 1] = i
        end
      end
    end
  end
  statuses[#statuses + 1] = string.rep('1', done)
  if n > 0 then
    call('HDEL', active, unpack(released))
    over.released[workflow] = (over.released[workflow] or 0) + n
  end
  if next(told) then sayEnds(base, workflow, told, first, last) end
end
