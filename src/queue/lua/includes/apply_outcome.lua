--- @include add_delayed when needed
--- @include add_waiting when needed
--- @include announce when needed
--- @include arm_wake
--- @include begin_undo when needed
--- @include choose_limiters when needed
--- @include complete_job
--- @include continue_job when needed
--- @include finalize_cancelled when needed
--- @include finalize_completed when needed
--- @include finalize_failed when needed
--- @include is_claim
--- @include key_of
--- @include pause_limiter when needed
--- @include place_of
--- @include publish_end
--- @include read_claim
--- @include read_spec
--- @include release_group
--- @include suspend_job when needed
--- @include write_start

--- Apply what an attempt ended in, if the claim is still the one that its token names.
--- `kind`: completed (text: result) | retry (text: failure, number: delay) | failed (text: failure) |
--- cancelled (text: reason) | suspended (text: event names, a line each; number: until, or empty) | released |
--- limited (text: limiter or empty, number: delay) | continued (text: payload).
--- The number of failed and cancelled is that of the compensations that are registered, or empty.
--- `over`: what is the same for many outcomes and is for the caller to write: how many claims are `released`, by workflow,
--- and jobs that have `ended` (as `enterCompleted` wants them).
--- A job whose cancellation was asked for ends as cancelled, whatever the attempt ended in.
--- Returns 1, or 0 where the claim is lost and nothing was written, or 2 where older failed jobs made room for this one.
local function applyOutcome(base, kind, workflow, id, token, text, number, now, over)
  local job = keyOf(base, workflow, 'j', id)
  local claim = readClaim(base, workflow, id)
  if not isClaim(claim, token) then return '0' end
  local record = redis.call('HMGET', job, 'spec', 'cancel', 'stalls', 'waiters', 'watchers', 'parent', 'kids')
  if not record[1] then return '0' end
  writeStart(base, workflow, id, claim)
  local spec, place = readSpec(record[1]), placeOf(claim)
  local told = { record[4], record[5], record[6], record[7] }
  if record[2] then
    if kind ~= 'failed' and kind ~= 'cancelled' then number = '' end
    kind, text = 'cancelled', record[2]
  end
  local goesOn = kind == 'retry' or kind == 'suspended' or kind == 'limited' or kind == 'released'
  local holds = goesOn and spec.strict and spec.group ~= ''
  -- at once: an outcome that comes twice in a call counts once
  redis.call('HDEL', keyOf(base, workflow, 'active'), id)
  over.released[workflow] = (over.released[workflow] or 0) + 1
  if not holds then releaseGroup(base, workflow, spec) end
  if kind == 'failed' or kind == 'cancelled' then
    if beginUndo(base, workflow, id, spec, place, kind, text, number ~= '' and number) then return '1' end
  end
  if kind == 'completed' and spec.result_ttl > 0 and not told[3] and not told[4] then
    completeJob(base, workflow, id, text, spec.result_ttl, now, over.ended)
    publishEnd(base, workflow, id, spec, kind, text, true, told)
  elseif kind == 'completed' then
    finalizeCompleted(base, workflow, id, spec, text, now, told)
  elseif kind == 'failed' then
    if finalizeFailed(base, workflow, id, spec, text, now, told) then return '2' end
  elseif kind == 'cancelled' then
    finalizeCancelled(base, workflow, id, spec, text, now, told)
  else
    redis.call('HSET', job, 'score', place)
    if holds then redis.call('HSET', job, 'holds', '1') else redis.call('HDEL', job, 'holds') end
    if kind ~= 'released' and record[3] then redis.call('HDEL', job, 'stalls') end
    if kind == 'retry' then
      redis.call('HSET', job, 'failure', text)
      redis.call('HINCRBY', job, 'failures', 1)
      redis.call('HDEL', job, 'started', 'awaits', holds and 'started' or 'score')
      addDelayed(base, workflow, id, now + number)
      if told[2] then announce(base, workflow, id, spec.run, 'retrying', text, told[2]) end
    elseif kind == 'limited' then
      -- the next claim starts the attempt again; none has failed
      redis.call('HSETNX', job, 'failures', 0)
      redis.call('HDEL', job, 'started', 'awaits')
      if text ~= '' and (chooseLimiters(base, workflow) or {})[text] then
        pauseLimiter(base, text, now + number, now)
        addWaiting(base, workflow, id, spec, place, holds)
        armWake(base, workflow)
      else
        addDelayed(base, workflow, id, now + number)
      end
    elseif kind == 'continued' then
      continueJob(base, workflow, id, record[1], text, told[4])
      armWake(base, workflow)
    elseif kind == 'suspended' then
      suspendJob(base, workflow, id, spec, place, holds, text, tonumber(number), now)
      if told[2] then announce(base, workflow, id, spec.run, 'suspended', number, told[2]) end
    else
      addWaiting(base, workflow, id, spec, place, holds)
      armWake(base, workflow)
    end
  end
  return '1'
end
