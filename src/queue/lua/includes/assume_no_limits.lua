--- @include key_of
--- @include read_limits

--- Where neither the namespace nor any workflow of `wants` has limits of any kind, which one command says, there are none
--- to be read.
local function assumeNoLimits(base, wants)
  local keys = { keyOf(base, nil, 'limits') }
  for _, want in ipairs(wants) do keys[#keys + 1] = keyOf(base, want[1], 'limits') end
  if redis.call('EXISTS', unpack(keys)) > 0 then return end
  readLimits(base, nil, true)
  for _, want in ipairs(wants) do readLimits(base, want[1], true) end
end
