--- Remove a schedule; jobs that it has added stay.
--- keys: base
--- args: workflow, schedule, nonce
--- returns: 1 removed | 0 there is none
--- @include answer_once
--- @include key_of
return answerOnce(KEYS[1], ARGV[3], function()
  redis.call('ZREM', keyOf(KEYS[1], ARGV[1], 'due'), ARGV[2])
  return redis.call('DEL', keyOf(KEYS[1], ARGV[1], 'schedule', ARGV[2]))
end)
