--- @include key_of

--- Are there jobs whose parents have ended, and that are to follow them?
local function cascadesWait(base)
  return redis.call('EXISTS', keyOf(base, nil, 'cascades')) == 1
end
