--- @include key_of

--- What a job started is to end with it: its children (those of its `barrier`: that have not ended; of `children`: all)
--- are set aside for `end_descendants`, which ends them (cancel | remove) a bounded batch a call. `held`: those it holds back.
local function cascadeEnd(base, workflow, id, kind, how)
  local from = keyOf(base, workflow, kind, id)
  if redis.call('EXISTS', from) == 0 then return end
  local name = table.concat({ how, kind, workflow, id }, '\t')
  redis.call('RENAME', from, keyOf(base, nil, '@cascade', name))
  redis.call('SADD', keyOf(base, nil, 'cascades'), name)
end
