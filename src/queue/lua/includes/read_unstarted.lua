-- within the nonce, behind the comma before it, of a spec that begins with when the job was created
local NONCE = 34

--- The payload and the spec of a job that waits to be started for the first time, with nothing out of the ordinary in its
--- record, who waits for it, its parent, and whether its spec has anything but that instant and its nonce; nil for any other.
--- `record`: all there is in it, as there are few fields: to ask for each that it may have takes as long for those that it
--- has not.
local function readUnstarted(record)
  if #record == 4 and record[1] == 'data' and record[3] == 'spec' then
    return record[2], record[4], nil, nil, string.find(record[4], ',', NONCE, true)
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
