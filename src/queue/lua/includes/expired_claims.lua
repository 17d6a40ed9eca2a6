--- @include key_of
local CLAIMS_AT_ONCE = 1000
local WORKFLOWS_OF_A_LOOK = 200
local CLAIMS_OF_A_LOOK = 100
local NAMES_AT_ONCE = 1000

--- Up to `limit` claims whose lease has run out ({ workflow, id, claim, deadline }), those that have for longest first;
--- whether there may be more; and whether Redis was `away` for longer than a lease before this round began. A call looks at a
--- portion of the claims of a round, and the next goes on from there: what is left of it stands in a list, which is
--- forgotten where nobody goes on within a `lease`.
local function expiredClaims(base, limit, now, lease, away)
  local round, expired, seen, done = keyOf(base, nil, 'sweeping'), {}, 0, 0
  local left = redis.call('LRANGE', round, 0, WORKFLOWS_OF_A_LOOK - 1)
  if not left[1] then
    local names = redis.call('HKEYS', keyOf(base, nil, 'running'))
    for i, workflow in ipairs(names) do names[i] = (away and '1' or '0') .. ' 0 ' .. workflow end
    for i = 1, #names, NAMES_AT_ONCE do
      redis.call('RPUSH', round, unpack(names, i, math.min(i + NAMES_AT_ONCE - 1, #names)))
    end
    left = { unpack(names, 1, math.min(WORKFLOWS_OF_A_LOOK, #names)) }
  end
  for _, part in ipairs(left) do
    local since, cursor, workflow = string.match(part, '^(%d) (%d+) (.*)$')
    away = since == '1'
    repeat
      local found = redis.call('HSCAN', keyOf(base, workflow, 'active'), cursor, 'COUNT', CLAIMS_OF_A_LOOK)
      for i = 1, #found[2], 2 do
        local id, claim = found[2][i], found[2][i + 1]
        local deadline = tonumber(string.match(claim, ' %S+ (%S+)')) or 0
        if deadline <= now then
          expired[#expired + 1] = { workflow = workflow, id = id, claim = claim, deadline = deadline,
            member = workflow .. ':' .. id }
        end
      end
      seen = seen + #found[2] / 2
      -- what is too much is found again where it was
      if #expired <= limit then cursor = found[1] end
    until cursor == '0' or seen >= CLAIMS_AT_ONCE or #expired >= limit
    if cursor ~= '0' or #expired > limit then
      redis.call('LSET', round, done, since .. ' ' .. cursor .. ' ' .. workflow)
      break
    end
    done = done + 1
    if seen >= CLAIMS_AT_ONCE or #expired >= limit then break end
  end
  redis.call('LTRIM', round, done, -1)
  redis.call('PEXPIRE', round, lease)
  -- those that are too many came last
  expired = { unpack(expired, 1, math.min(limit, #expired)) }
  table.sort(expired, function(one, other)
    if one.deadline ~= other.deadline then return one.deadline < other.deadline end
    return one.member < other.member
  end)
  return expired, redis.call('EXISTS', round) == 1, away
end
