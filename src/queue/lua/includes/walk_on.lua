--- @include forget_portion
--- @include key_of

--- Walk through a job's children (or its barrier), a page a call, from where the last one stopped, which is kept under the
--- name of what was put off. Returns the page, and whether it was the last: nothing is put off any more then.
local function walkOn(base, name, members, limit)
  local place = keyOf(base, nil, '@cascade', name)
  local after = redis.call('GET', place)
  local page = redis.call('ZRANGEBYLEX', members, after and '(' .. after or '-', '+', 'LIMIT', 0, limit + 1)
  if #page > limit then
    page[#page] = nil
    redis.call('SET', place, page[limit])
    return page, false
  end
  forgetPortion(base, name)
  return page, true
end
