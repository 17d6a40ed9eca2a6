--- @include key_of

--- Nothing is left of what was put off under a name.
local function forgetPortion(base, name)
  redis.call('UNLINK', keyOf(base, nil, '@cascade', name))
  redis.call('SREM', keyOf(base, nil, 'cascades'), name)
end
