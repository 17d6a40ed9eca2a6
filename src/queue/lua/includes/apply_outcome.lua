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
--- @include key_of
--- @include pause_limiter when needed
--- @include publish_end
--- @include read_spec
--- @include release_group
--- @include suspend_job when needed

--- Apply what an attempt ended in, if the claim is still the one that its token names.
--- `kind`: completed (text: result) | retry (text: failure, number: delay) | failed (text: failure) |
--- cancelled (text: reason) | suspended (text: event names, a line each; number: until, or empty) | released |
--- limited (text: limiter or empty, number: delay) | continued (text: payload).
--- The number of failed and cancelled is that of the compensations that are registered, or empty.
--- `over`: what is the same for many outcomes and is for the caller to write: claims that are `released` (as
--- `releaseActive` wants them), and jobs that have `ended` (as `enterCompleted` does).
--- A job whose cancellation was asked for ends as cancelled, whatever the attempt ended in.
--- Returns 1, or 0 where the claim is lost and nothing was written, or 2 where older failed jobs made room for this one.
local function applyOutcome(base, kind, workflow, id, token, text, number, now, over)
  local job = keyOf(base, workflow, 'j', id)
  local record = redis.call('HMGET', job, 'token', 'spec', 'cancel', 'score', 'stalls', 'waiters', 'watchers', 'parent', 'kids')
  if record[1] ~= token then return '0' end
  local spec, place = readSpec(record[2]), tonumber(record[4])
  local told = { record[6], record[7], record[8], record[9] }
  if record[3] then
    if kind ~= 'failed' and kind ~= 'cancelled' then number = '' end
    kind, text = 'cancelled', record[3]
  end
  local goesOn = kind == 'retry' or kind == 'suspended' or kind == 'limited' or kind == 'released'
  local holds = goesOn and spec.strict and spec.group ~= ''
  local released = over.released[workflow]
  if released then released[#released + 1] = id else over.released[workflow] = { id } end
  if not holds then releaseGroup(base, workflow, id, spec) end
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
    redis.call('HSET', job, 'token', '')
    if holds then redis.call('HSET', job, 'holds', '1') else redis.call('HDEL', job, 'holds') end
    if kind ~= 'released' and record[5] then redis.call('HDEL', job, 'stalls') end
    if kind == 'retry' then
      redis.call('HSET', job, 'failure', text)
      redis.call('HINCRBY', job, 'failures', 1)
      redis.call('HDEL', job, 'started', 'awaits', holds and 'started' or 'score')
      addDelayed(base, workflow, id, now + number)
      if record[7] then announce(base, workflow, id, spec.run, 'retrying', text, record[7]) end
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
      continueJob(base, workflow, id, record[2], text, record[9])
      armWake(base, workflow)
    elseif kind == 'suspended' then
      suspendJob(base, workflow, id, spec, place, holds, text, tonumber(number), now)
      if record[7] then announce(base, workflow, id, spec.run, 'suspended', number, record[7]) end
    else
      addWaiting(base, workflow, id, spec, place, holds)
      armWake(base, workflow)
    end
  end
  return '1'
end
