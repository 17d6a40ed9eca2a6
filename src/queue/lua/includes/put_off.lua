--- @include key_of

--- Work on a job that grows with its children is set aside for `end_descendants`, which does it a bounded portion a call.
--- `how`: cancel | remove | release | readmit | retain | undo | anew | again, as it says there; `about`: what it wants to know.
--- Returns the name it stands under, and the stamp in it, which no other has for the same job.
local function putOff(base, how, about, workflow, id)
  local time = redis.call('TIME')
  -- an earlier one of the same job may be under way
  local stamp = time[1] .. '.' .. time[2]
  local name = table.concat({ how, about, workflow, stamp, id or '' }, '\t')
  redis.call('SADD', keyOf(base, nil, 'cascades'), name)
  return name, stamp
end
