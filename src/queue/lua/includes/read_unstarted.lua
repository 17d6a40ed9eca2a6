--- The payload and the spec of a job that waits to be started for the first time, with nothing out of the ordinary in its
--- record, who waits for it, and its parent; nil for any other.
local function readUnstarted(job)
  -- all there is in it: few fields, where to ask for each that it may have takes as long for those that it has not
  local record, data, spec, waiters, parent = redis.call('HGETALL', job), nil, nil, nil, nil
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
  return data, spec, waiters, parent
end
