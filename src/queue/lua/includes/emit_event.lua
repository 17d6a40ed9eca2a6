--- @include key_of
--- @include read_limits
local STREAM_TTL = 86400000

--- Write to the workflow's stream of events, where one is asked for; it holds about as many as was said.
local function emitEvent(base, workflow, event, id)
  local most = readLimits(base, workflow).stream
  if most == 0 then return end
  local stream = keyOf(base, workflow, 'stream')
  redis.call('XADD', stream, 'MAXLEN', '~', most, '*', 'event', event, 'job', id)
  redis.call('PEXPIRE', stream, STREAM_TTL)
end
