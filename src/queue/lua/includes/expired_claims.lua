--- @include key_of
local CLAIMS_AT_ONCE = 1000
local CLAIMS_OF_A_LOOK = 100
local POSITION_TTL = 60000

--- Up to `limit` claims whose lease has run out ({ workflow, id, claim, deadline }), those that have for longest first; and
--- whether there may be more. Where many jobs run, a call looks at a portion of the claims, and the next goes on from there.
local function expiredClaims(base, limit, now)
  local position, running = keyOf(base, nil, 'sweeping'), keyOf(base, nil, 'running')
  local cursor, from = string.match(redis.call('GET', position) or '', '^(%d+) (.*)$')
  local workflows, expired, seen, left = redis.call('HKEYS', running), {}, 0, nil
  table.sort(workflows)
  for _, workflow in ipairs(workflows) do
    if not left and workflow >= (from or '') then
      local active = keyOf(base, workflow, 'active')
      if workflow ~= from then cursor = '0' end
      repeat
        if seen >= CLAIMS_AT_ONCE then
          left = cursor .. ' ' .. workflow
          break
        end
        local found = redis.call('HSCAN', active, cursor, 'COUNT', CLAIMS_OF_A_LOOK)
        cursor = found[1]
        for i = 1, #found[2], 2 do
          local id, claim = found[2][i], found[2][i + 1]
          local deadline = tonumber(string.match(claim, ' %S+ (%S+)')) or 0
          if deadline <= now then
            expired[#expired + 1] = { workflow = workflow, id = id, claim = claim, deadline = deadline }
          end
        end
        seen = seen + #found[2] / 2
      until cursor == '0'
    end
  end
  table.sort(expired, function(one, other)
    if one.deadline ~= other.deadline then return one.deadline < other.deadline end
    return one.workflow .. ':' .. one.id < other.workflow .. ':' .. other.id
  end)
  -- what is left of them is found again where these were
  if #expired > limit then return { unpack(expired, 1, limit) }, true end
  if left then
    redis.call('SET', position, left, 'PX', POSITION_TTL)
  elseif from then
    redis.call('DEL', position)
  end
  return expired, left ~= nil
end
