--- Store checkpoints, each only if its claim is still the token's.
--- keys: base
--- args: steps (workflow, id, token, path, text)*
--- returns: a digit a checkpoint: 1 stored | 0 the claim is lost
--- @include key_of
local base, statuses = KEYS[1], {}
for i = 1, #ARGV, 5 do
  local job = keyOf(base, ARGV[i], 'j', ARGV[i + 1])
  local record = redis.call('HMGET', job, 'token', 'stalls')
  if record[1] == ARGV[i + 2] then
    redis.call('HSET', keyOf(base, ARGV[i], 'steps', ARGV[i + 1]), ARGV[i + 3], ARGV[i + 4])
    if record[2] then redis.call('HDEL', job, 'stalls') end
    statuses[#statuses + 1] = '1'
  else
    statuses[#statuses + 1] = '0'
  end
end
return table.concat(statuses)
