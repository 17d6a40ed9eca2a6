--- @include key_of

--- Push to processes (a word each) what happened to jobs of a workflow, in one message: what, workflow, (id, text, nonce)*.
local function push(base, processes, said)
  local message = cmsgpack.pack(said)
  for process in string.gmatch(processes, '%S+') do
    redis.call('PUBLISH', keyOf(base, nil, '@waiting', process), message)
  end
end
