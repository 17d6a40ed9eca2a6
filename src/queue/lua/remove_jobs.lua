--- Remove a page of a workflow's jobs in one state; of those that have ended, only what ended `age` ms ago or earlier.
--- keys: base
--- args: workflow, state, age, skip, limit, nonce
--- returns: jobs removed, jobs looked at
--- @include answer_once
--- @include drop_job
--- @include key_of
--- @include page_of_state
--- @include read_clock
--- @include recover_claim
local base, workflow, state, age = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
return answerOnce(base, ARGV[6], function()
  local before, removed = readClock() - age, 0
  local ids = pageOfState(base, workflow, state, tonumber(ARGV[4]), tonumber(ARGV[5]))
  for _, id in ipairs(ids) do
    local ended = redis.call('HMGET', keyOf(base, workflow, 'j', id), 'finished', 'state')
    -- as stateOf has it
    local finished = ended[1] or string.match(ended[2] or '', ' (%d+)')
    if age == 0 or not finished or tonumber(finished) <= before then
      -- what has expired by itself still stands in the list of its state
      local dropped = dropJob(base, workflow, id) == 1
      if not dropped and state == 'active' then
        recoverClaim(base, workflow, id, readClock())
      elseif not dropped then
        redis.call('ZREM', keyOf(base, workflow, state), id)
      end
      removed = removed + 1
    end
  end
  return { removed, #ids }
end)
