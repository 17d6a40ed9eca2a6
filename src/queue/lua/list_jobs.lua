--- Some of a page of a workflow's jobs in one state, from the `skip`th: as much as one call looks at. Of the waiting ones
--- those without a group come in order, then those of groups, in no order of their groups; the active ones come in none,
--- and all of them. A record that has expired is no job.
--- keys: base
--- args: workflow, state, place, skip, limit
---   place: empty at first, then where the last call stopped
--- returns: the place to go on from (empty: there are no more), how many are still to be passed over, ids
--- @include key_of
--- @include read_clock
local LOOKED_AT = 1000
local GROUPS_LOOKED_AT = 200
local base, workflow, state, place, skip, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local members, ids = keyOf(base, workflow, state), {}
if state == 'active' then
  local page = redis.call('HSCAN', members, place == '' and '0' or place, 'COUNT', LOOKED_AT)
  for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end
  return { page[1] == '0' and '' or page[1], skip, ids }
end
if state ~= 'waiting' then
  if state == 'completed' or state == 'cancelled' then
    skip = skip + redis.call('ZCOUNT', members, '-inf', string.format('(%d', readClock()))
  end
  return { '', 0, redis.call('ZRANGE', members, skip, skip + limit - 1) }
end
local ready, from = keyOf(base, workflow, 'ready'), string.match(place, '^ready (%d+)$')
if place == '' and redis.call('EXISTS', keyOf(base, workflow, 'groups')) == 0 then
  -- nothing stands in `ready` but jobs: the page is found without a walk
  for _, member in ipairs(redis.call('ZRANGE', ready, skip, skip + limit - 1)) do ids[#ids + 1] = string.sub(member, 3) end
  return { '', 0, ids }
end
if place == '' or from then
  from = tonumber(from or 0)
  local page = redis.call('ZRANGE', ready, from, from + LOOKED_AT - 1)
  for _, member in ipairs(page) do
    if string.sub(member, 1, 2) == 'j:' then
      if skip > 0 then skip = skip - 1 elseif #ids < limit then ids[#ids + 1] = string.sub(member, 3) end
    end
  end
  return { #page == LOOKED_AT and string.format('ready %d', from + LOOKED_AT) or 'groups 0', skip, ids }
end
local groups = redis.call('SSCAN', keyOf(base, workflow, 'groups'), string.match(place, '%d+$'), 'COUNT', GROUPS_LOOKED_AT)
for _, group in ipairs(groups[2]) do
  if #ids == limit then break end
  local waiting = keyOf(base, workflow, 'g', group)
  local size = redis.call('ZCARD', waiting)
  if size > skip then
    for _, id in ipairs(redis.call('ZRANGE', waiting, skip, skip + limit - #ids - 1)) do ids[#ids + 1] = id end
  end
  skip = math.max(skip - size, 0)
end
return { groups[1] == '0' and '' or 'groups ' .. groups[1], skip, ids }
