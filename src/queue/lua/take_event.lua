--- Take the oldest event of a name and write it as the checkpoint of the step that waits for it, in one; where there is
--- none, write `otherwise` as the checkpoint (nothing if it is empty).
--- keys: base
--- args: workflow, id, token, name, path, before, otherwise
--- returns: the event's text; nil: none has arrived; 0: the claim is lost
--- @include beside
--- @include first_event
--- @include is_claim
--- @include key_of
--- @include mark_claim
--- @include read_claim
--- @include require_memory
requireMemory(KEYS[1])
local base, workflow, id = KEYS[1], ARGV[1], ARGV[2]
local claim = readClaim(base, workflow, id)
if not isClaim(claim, ARGV[3]) then return 0 end
local steps, path, before = keyOf(base, workflow, 'steps', id), ARGV[5], ARGV[6]
local recorded = redis.call('HGET', steps, path)
if recorded then
  -- this very call was executed before, and its answer lost
  if string.sub(recorded, 1, #before) == before then return string.sub(recorded, #before + 1) end
  if recorded == ARGV[7] then return nil end
end
markClaim(base, workflow, id, claim, BESIDE)
local event = firstEvent(base, workflow, id, ARGV[4])
if event then
  local text = string.match(event, '^[^\n]*\n[^\n]*\n[^\n]*\n(.*)$')
  redis.call('ZREM', keyOf(base, workflow, 'events', id), event)
  redis.call('HSET', steps, path, before .. text)
  return text
end
if ARGV[7] ~= '' then redis.call('HSET', steps, path, ARGV[7]) end
return nil
