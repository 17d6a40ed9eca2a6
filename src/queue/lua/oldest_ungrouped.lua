--- When the oldest of a workflow's waiting jobs without a group was created. Within a priority the first is the oldest,
--- so one look a priority in use is enough.
--- keys: base
--- args: workflow
--- returns: Redis' now, ms since the epoch (0: none waits)
--- @include key_of
--- @include read_clock
--- @include read_spec
local BAND, MOST_BANDS, MOST_GROUPS = 4294967296, 64, 64
local base, workflow = KEYS[1], ARGV[1]
local ready, from, oldest = keyOf(base, workflow, 'ready'), 0, 0
for _ = 1, MOST_BANDS do
  local first, score = nil, nil
  local page = redis.call('ZRANGEBYSCORE', ready, string.format('%d', from), '+inf', 'WITHSCORES', 'LIMIT', 0, MOST_GROUPS)
  if #page == 0 then break end
  for i = 1, #page, 2 do
    score = tonumber(page[i + 1])
    if string.sub(page[i], 1, 2) == 'j:' then
      first = string.sub(page[i], 3)
      break
    end
  end
  local spec = first and redis.call('HGET', keyOf(base, workflow, 'j', first), 'spec')
  local created = spec and readSpec(spec).created or 0
  if created > 0 and (oldest == 0 or created < oldest) then oldest = created end
  from = first and (math.floor(score / BAND) + 1) * BAND or score + 1
end
return { readClock(), oldest }
