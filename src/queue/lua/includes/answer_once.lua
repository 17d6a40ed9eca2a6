--- @include key_of
local ANSWER_TTL = 120000

--- Run a transition that answers with numbers. A copy of the call (`nonce`; empty: none is sent), whose answer was lost,
--- changes nothing and is given the answer of the first.
local function answerOnce(base, nonce, transition)
  if nonce == '' then return transition() end
  local receipt = keyOf(base, nil, '@receipt', nonce)
  local known = redis.call('GET', receipt)
  if known then return cjson.decode(known) end
  local answer = transition()
  redis.call('SET', receipt, cjson.encode(answer), 'PX', ANSWER_TTL)
  return answer
end
