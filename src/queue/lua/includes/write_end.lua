--- @include key_of
local CHILD_MARKS = { completed = ':', failed = '!', cancelled = '~', removed = '~' }

--- Write how a child has ended among its parent's checkpoints. `above` and `aboveId` are the parent; one that has waited
--- for a flow cannot know from its own code which child it was, and is told that of one that did not succeed.
local function writeEnd(base, above, aboveId, barrier, path, workflow, id, state, text)
  local steps = keyOf(base, above, 'steps', aboveId)
  redis.call('HSET', steps, path, 'child' .. CHILD_MARKS[state] .. text)
  if barrier == '' and state ~= 'completed' then
    redis.call('HSET', steps, path .. '/child', 'of ' .. workflow .. ':' .. id)
  end
end
