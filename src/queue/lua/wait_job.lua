--- Look whether a job has ended; if not, have its end pushed to a process.
--- keys: base
--- args: workflow, id, run, process
--- returns: state, nonce, text of the end (result, failure or reason), empty while the job goes on
---   state is 'missing' without a record, 'replaced' when the id has another life than `run` (empty: any)
--- @include key_of
--- @include read_spec
local job = keyOf(KEYS[1], ARGV[1], 'j', ARGV[2])
local record = redis.call('HMGET', job, 'state', 'spec', 'result', 'failure', 'reason', 'waiters')
local state = record[1]
if not state then return { 'missing', '', '' } end
local run = readSpec(record[2]).run
if ARGV[3] ~= '' and ARGV[3] ~= run then return { 'replaced', run, '' } end
if state == 'completed' then return { state, run, record[3] } end
if state == 'failed' then return { state, run, record[4] } end
if state == 'cancelled' then return { state, run, record[5] } end
local waiters = record[6] or ''
if not string.find(' ' .. waiters .. ' ', ' ' .. ARGV[4] .. ' ', 1, true) then
  redis.call('HSET', job, 'waiters', waiters == '' and ARGV[4] or waiters .. ' ' .. ARGV[4])
end
return { state, run, '' }
