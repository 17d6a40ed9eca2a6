--- Is a claim (see `enterActive`; false: there is none) the one that a token names?
local function isClaim(claim, token)
  return claim and string.sub(claim, 2, #token + 2) == token .. ' '
end
