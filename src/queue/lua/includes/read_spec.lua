--- @include result_ttl
local SPEC_DEFAULTS = {
  __index = {
    group = '', priority = 0, expires = 0, result_ttl = RESULT_TTL, keep_failed = { 100, 0 }, max_stalled = 3, strict = false,
    round = 0,
  },
}

--- A job's unchanging part as a table; what is not written stands at the default.
local function readSpec(text)
  return setmetatable(cjson.decode(text), SPEC_DEFAULTS)
end
