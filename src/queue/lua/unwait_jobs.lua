--- A process waits for the ends of jobs (or watches them, as the role says) no longer.
--- keys: base
--- args: process, jobs (workflow, id, role)*
--- returns: nothing
--- @include key_of
--- @include tell_claim
for i = 2, #ARGV, 3 do
  local job, role = keyOf(KEYS[1], ARGV[i], 'j', ARGV[i + 1]), ARGV[i + 2]
  local entered, kept = redis.call('HGET', job, role), {}
  for process in string.gmatch(entered or '', '%S+') do
    if process ~= ARGV[1] then kept[#kept + 1] = process end
  end
  if #kept > 0 then
    redis.call('HSET', job, role, table.concat(kept, ' '))
  elseif entered then
    redis.call('HDEL', job, role)
  end
  if role == 'waiters' then tellClaim(KEYS[1], ARGV[i], ARGV[i + 1], table.concat(kept, ' ')) end
end
