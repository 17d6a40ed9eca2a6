-- within the nonce, behind the comma before it, of a spec that begins with when the job was created
local NONCE = 34
-- 'g' of "group"; no other option begins so
local GROUP = 103

--- The payload and the spec of a job that waits to be started for the first time, with nothing out of the ordinary in its
--- record, who waits for it, its parent, and whether its spec has anything but that instant and its nonce; nil for any other.
--- `record`: all there is in it, as there are few fields: to ask for each that it may have takes as long for those that it
--- has not.
local function readUnstarted(record)
  local length = #record
  if length <= 6 and record[1] == 'data' and record[3] == 'spec' then
    local data, spec = record[2], record[4]
    local options = string.find(spec, ',', NONCE, true)
    -- most often there is a group, or nothing
    if options and string.byte(spec, options + 2) == GROUP and not string.find(spec, ',', options + 1, true) then
      options = nil
    end
    if length == 4 then return data, spec, nil, nil, options end
    if record[5] == 'waiters' then return data, spec, record[6], nil, options end
  end
  local data, spec, waiters, parent = nil, nil, nil, nil
  for i = 1, #record, 2 do
    local field = record[i]
    if field == 'data' then
      data = record[i + 1]
    elseif field == 'spec' then
      spec = record[i + 1]
    elseif field == 'waiters' then
      waiters = record[i + 1]
    elseif field == 'parent' then
      parent = record[i + 1]
    else
      return nil
    end
  end
  return data, spec, waiters, parent, spec and string.find(spec, ',', NONCE, true)
end
