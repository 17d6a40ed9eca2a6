--- @include arm_wake
--- @include first_instant
--- @include forget_ended
--- @include front_of
--- @include key_of
--- @include read_clock
--- @include read_receipt
--- @include spec_text
--- @include write_receipt
local PLACED_OTHERWISE = { '"group":', '"priority":', '"expires":' }

--- What `add_jobs` does, in few commands, for a call with one job that can run at once, of an id that nobody has, and with
--- nothing out of the ordinary about it. Everything is read before anything is written, and what is written first is refused
--- where the server is out of memory. Returns the answer, or nil where it takes more.
local function addSimply()
  if #ARGV ~= 12 or ARGV[5] ~= '' or ARGV[8] ~= '' then return nil end
  local base, producer, number, workflow, id = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[10]
  for _, option in ipairs(PLACED_OTHERWISE) do
    if string.find(ARGV[4], option, 1, true) then return nil end
  end
  local own, now, stamp = keyOf(base, workflow, ''), readClock()
  local job, limits = own .. 'j:' .. id, own .. 'limits'
  if readReceipt(base, producer, number) or redis.call('EXISTS', job, limits, own .. 'delayed') > 0
    and (redis.call('EXISTS', job, limits) > 0 or firstInstant(base, workflow, 'delayed') <= now) then
    return nil
  end
  local spec = '{"created":' .. stamp .. ',' .. string.sub(specText(ARGV[11], ARGV[4]), 2)
  local role, process = string.match(ARGV[7], '^(%a+) (.*)$')
  if role then
    redis.call('HSET', job, 'data', ARGV[12], 'spec', spec, role, process)
  else
    redis.call('HSET', job, 'data', ARGV[12], 'spec', spec)
  end
  if ARGV[6] ~= 'fresh' then forgetEnded(base, workflow, id) end
  redis.call('ZADD', own .. 'ready', frontOf(0) + redis.call('INCR', own .. 'pc'), 'j:' .. id)
  armWake(base, workflow)
  writeReceipt(base, producer, number, { '' })
  return { '' }
end
