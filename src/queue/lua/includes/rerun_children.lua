--- @include forget_portion
--- @include is_parked_for
--- @include key_of
--- @include rerun_job
--- @include start_again
--- @include walk_on
--- @include write_end

--- See to some of the children of a job that is to run again: those of its flow that did not succeed run again too, and it
--- waits for them; those that its run had started are started again by it. After the last, it runs. Returns how many.
local function rerunChildren(base, name, workflow, stamp, id, limit)
  if not isParkedFor(base, workflow, id, '\t//again\t' .. stamp) then
    forgetPortion(base, name)
    return 1
  end
  local page, last = walkOn(base, name, keyOf(base, workflow, 'children', id), limit)
  local steps = keyOf(base, workflow, 'steps', id)
  for _, member in ipairs(page) do
    local path, child, childId = string.match(member, '^([^\n]*)\n([^:]*):(.*)$')
    local ended = string.sub(redis.call('HGET', steps, path) or '', 1, 6)
    local flow = string.sub(path, 1, 2) == '//'
    if not flow then
      if ended == 'child!' or ended == 'child~' then
        local map = string.match(path, '^(.*)/%d+$')
        redis.call('HDEL', steps, path)
        if map and string.sub(redis.call('HGET', steps, map) or '', 1, 6) == 'child@' then
          redis.call('HDEL', steps, map)
        end
      end
    elseif ended ~= 'child:' then
      local found = redis.call('HMGET', keyOf(base, child, 'j', childId), 'state', 'result', 'spec')
      if found[1] == 'completed' then
        writeEnd(base, workflow, id, '', path, child, childId, 'completed', found[2])
      elseif found[3] then
        redis.call('ZADD', keyOf(base, workflow, 'barrier', id), 0, '\n' .. child .. ':' .. childId)
        redis.call('HDEL', steps, path)
        rerunJob(base, child, childId, 'flow')
      elseif ended == '' then
        writeEnd(base, workflow, id, '', path, child, childId, 'removed', 'it was removed')
      end
    end
  end
  if last then startAgain(base, workflow, id) end
  return #page
end
