--- @include key_of
--- @include put_off

--- What a job started is to follow it: its children (those of its `barrier`: that have not ended; of `children`: all;
--- `held`: those it holds back) are taken off its list, to be ended (`how`: cancel | remove), or to have their own
--- retention begin (release), by and by. So are the groups that are `throttled` (`id` nil), to stand in line again
--- (readmit). Returns whether there was anything.
local function cascadeEnd(base, workflow, id, kind, how)
  local from = keyOf(base, workflow, kind, id)
  if redis.call('EXISTS', from) == 0 then return false end
  local to = keyOf(base, nil, '@cascade', (putOff(base, how, kind, workflow, id)))
  redis.call('RENAME', from, to)
  redis.call('PERSIST', to)
  return true
end
