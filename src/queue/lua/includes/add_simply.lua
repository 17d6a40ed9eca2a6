--- @include arm_wake
--- @include first_instant
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
  local job, now = keyOf(base, workflow, 'j', id), readClock()
  if readReceipt(base, producer, number) or redis.call('EXISTS', job, keyOf(base, workflow, 'limits')) > 0
    or (firstInstant(base, workflow, 'delayed') or math.huge) <= now then
    return nil
  end
  local spec = string.format('{"created":%.0f,', now) .. string.sub(specText(ARGV[11], ARGV[4]), 2)
  local role, process = string.match(ARGV[7], '^(%a+) (.*)$')
  if role then
    redis.call('HSET', job, 'data', ARGV[12], 'spec', spec, role, process)
  else
    redis.call('HSET', job, 'data', ARGV[12], 'spec', spec)
  end
  -- of a record that has expired, the entry may still stand there
  local completed, cancelled = keyOf(base, workflow, 'completed'), keyOf(base, workflow, 'cancelled')
  if redis.call('EXISTS', completed, cancelled) > 0 then
    redis.call('ZREM', completed, id)
    redis.call('ZREM', cancelled, id)
  end
  local place = frontOf(0) + redis.call('INCR', keyOf(base, workflow, 'pc'))
  redis.call('ZADD', keyOf(base, workflow, 'ready'), place, 'j:' .. id)
  armWake(base, workflow)
  writeReceipt(base, producer, number, { '' })
  return { '' }
end
