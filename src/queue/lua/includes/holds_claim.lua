--- @include key_of

--- Is the claim that the token names still the job's?
local function holdsClaim(base, workflow, id, token)
  return redis.call('HGET', keyOf(base, workflow, 'j', id), 'token') == token
end
