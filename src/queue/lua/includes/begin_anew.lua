--- @include cascade_end
--- @include key_of
--- @include read_spec

--- A job forgets what it has done, within the same life: no checkpoints, and a new round, which keeps the children of
--- this one and of the next apart. Those of this round go on without it, but for the ones that it holds back. What the
--- children of its flow gave is no doing of its own, and stays. `text`: its spec. Returns its new spec as text.
local function beginAnew(base, workflow, id, text, kids)
  local job, steps = keyOf(base, workflow, 'j', id), keyOf(base, workflow, 'steps', id)
  local kept = {}
  if kids then
    local children = keyOf(base, workflow, 'children', id)
    cascadeEnd(base, workflow, id, 'held', 'cancel')
    cascadeEnd(base, workflow, id, 'children', 'release', true)
    redis.call('ZREMRANGEBYLEX', keyOf(base, workflow, 'barrier', id), '[\n\255', '+')
    redis.call('ZREMRANGEBYLEX', children, '-', '(//')
    redis.call('ZREMRANGEBYLEX', children, '[//\255', '+')
    for _, member in ipairs(redis.call('ZRANGE', children, 0, -1)) do
      for _, path in ipairs({ string.match(member, '^[^\n]*'), string.match(member, '^[^\n]*') .. '/child' }) do
        local result = redis.call('HGET', steps, path)
        if result then
          kept[#kept + 1] = path
          kept[#kept + 1] = result
        end
      end
    end
    if redis.call('EXISTS', children) == 0 then redis.call('HDEL', job, 'kids') end
  end
  redis.call('UNLINK', steps)
  for i = 1, #kept, 2 do redis.call('HSET', steps, kept[i], kept[i + 1]) end
  local round = readSpec(text).round + 1
  local spec = string.format('{"round":%d,', round) .. string.sub(string.gsub(text, '"round":%d+,', ''), 2)
  redis.call('HSET', job, 'spec', spec)
  return spec
end
