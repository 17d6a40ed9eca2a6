--- @include key_of
--- @include put_off

--- What a job started is to follow it: its children (those of its `barrier`: that have not ended; of `children`: all;
--- `held`: those it holds back) are taken off its list, to be ended (`how`: cancel | remove), or to have their own
--- retention begin (release), by and by.
local function cascadeEnd(base, workflow, id, kind, how)
  local from = keyOf(base, workflow, kind, id)
  if redis.call('EXISTS', from) == 0 then return end
  local to = keyOf(base, nil, '@cascade', (putOff(base, how, kind, workflow, id)))
  redis.call('RENAME', from, to)
  redis.call('PERSIST', to)
end
