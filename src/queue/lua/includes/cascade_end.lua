--- @include key_of

--- What a job started is to follow it: its children (those of its `barrier`: that have not ended; of `children`: all;
--- `held`: those it holds back) are set aside for `end_descendants`, which ends them (`how`: cancel | remove), or has
--- their own retention begin (release), a bounded batch a call. With `keeps` they stay on its list.
local function cascadeEnd(base, workflow, id, kind, how, keeps)
  local from = keyOf(base, workflow, kind, id)
  if redis.call('EXISTS', from) == 0 then return end
  local time = redis.call('TIME')
  -- an earlier one of the same job may be under way
  local name = table.concat({ how, kind, workflow, time[1] .. '.' .. time[2], id }, '\t')
  local to = keyOf(base, nil, '@cascade', name)
  if keeps then
    redis.call('COPY', from, to)
  else
    redis.call('RENAME', from, to)
  end
  redis.call('PERSIST', to)
  redis.call('SADD', keyOf(base, nil, 'cascades'), name)
end
