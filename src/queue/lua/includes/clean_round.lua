--- @include forget_portion
--- @include is_parked_for
--- @include key_of
--- @include put_off
--- @include release_child
--- @include start_again
local BYTES_AT_ONCE = 1048576

--- Copy back some of what the children of a job's flow gave, from `old`. Returns how many it looked at, and whether that
--- was all.
local function keepFlow(old, steps, children, limit)
  local after, done, bytes = redis.call('HGET', old, '//'), 0, 0
  local page = redis.call('ZRANGEBYLEX', children, after and '(' .. after or '-', '+', 'LIMIT', 0, limit + 1)
  local full = #page > limit
  page[limit + 1] = nil
  for _, member in ipairs(page) do
    local path = string.match(member, '^[^\n]*')
    -- it may have ended anew meanwhile
    if redis.call('HEXISTS', steps, path) == 0 then
      for _, field in ipairs({ path, path .. '/child' }) do
        local text = redis.call('HGET', old, field)
        if text then redis.call('HSET', steps, field, text) end
        bytes = bytes + #(text or '')
      end
    end
    done, after = done + 1, member
    if bytes > BYTES_AT_ONCE then break end
  end
  if full or done < #page then
    redis.call('HSET', old, '//', after)
    return done, false
  end
  return done, true
end

--- Do a portion of what is to be done before a job's new round can begin: its children of the last one go on without it,
--- and its checkpoints go. What the children of its flow gave is no doing of its own, and stays; so do they. Then the round
--- begins, or (`rerun`) those of the flow that did not succeed run again first. Returns how much was done.
local function cleanRound(base, name, rerun, workflow, stamp, id, limit, now)
  local job = keyOf(base, workflow, 'j', id)
  if not isParkedFor(base, workflow, id, '\t//again\t' .. stamp) then
    forgetPortion(base, name)
    return 1
  end
  local barrier, children = keyOf(base, workflow, 'barrier', id), keyOf(base, workflow, 'children', id)
  -- first of all nobody writes his end among the checkpoints any more
  local page = redis.call('ZRANGEBYLEX', barrier, '[\n\255', '+', 'LIMIT', 0, limit)
  if #page > 0 then
    redis.call('ZREM', barrier, unpack(page))
    return #page
  end
  page = redis.call('ZRANGEBYLEX', children, '-', '(//', 'LIMIT', 0, limit)
  if #page == 0 then page = redis.call('ZRANGEBYLEX', children, '[//\255', '+', 'LIMIT', 0, limit) end
  if #page > 0 then
    redis.call('ZREM', children, unpack(page))
    for _, member in ipairs(page) do
      local child, childId = string.match(member, '([^:\n]*):([^\n]*)$')
      releaseChild(base, child, childId, now)
    end
    return #page
  end
  local old, steps, done = keyOf(base, nil, '@cascade', name), keyOf(base, workflow, 'steps', id), 0
  if redis.call('EXISTS', children) == 0 then
    redis.call('UNLINK', steps)
    redis.call('HDEL', job, 'kids')
  else
    if redis.call('EXISTS', old) == 0 and redis.call('EXISTS', steps) == 1 then redis.call('RENAME', steps, old) end
    local all
    done, all = keepFlow(old, steps, children, limit)
    if not all then return done end
  end
  forgetPortion(base, name)
  if rerun == 'rerun' then
    local _, again = putOff(base, 'again', '', workflow, id)
    redis.call('HSET', job, 'awaits', '\t//again\t' .. again)
  else
    startAgain(base, workflow, id)
  end
  return done + 1
end
