--- @include cascade_end
--- @include key_of
--- @include read_spec

--- A job forgets what it has done, within the same life: a new round, which keeps the children of this one and of the
--- next apart, and no checkpoints. One that has children (`kids`) is to be parked by the caller for `clean_round`; those
--- that it holds back are cancelled. `text`: its spec. Returns its new spec as text.
local function beginAnew(base, workflow, id, text, kids)
  if kids then
    cascadeEnd(base, workflow, id, 'held', 'cancel')
  else
    redis.call('UNLINK', keyOf(base, workflow, 'steps', id))
  end
  -- it comes first, for `plainClaim`
  local round = readSpec(text).round + 1
  local spec = string.format('{"round":%d,', round) .. string.sub(string.gsub(text, '"round":%d+,', ''), 2)
  redis.call('HSET', keyOf(base, workflow, 'j', id), 'spec', spec)
  return spec
end
