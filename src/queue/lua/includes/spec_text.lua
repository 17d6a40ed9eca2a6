--- A job's spec as a producer sends it: its nonce, and the rest.
local function specText(nonce, rest)
  return '{"run":"' .. nonce .. '"' .. rest
end
