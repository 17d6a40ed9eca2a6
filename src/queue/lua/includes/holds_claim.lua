--- @include is_claim
--- @include read_claim

--- Is the claim that the token names still the job's?
local function holdsClaim(base, workflow, id, token)
  return isClaim(readClaim(base, workflow, id), token)
end
