--- What stands in `held` for a child that is held back: those of a barrier are released in the order of the numbers that
--- their paths end in. `member`: workflow:id.
local function heldMember(barrier, path, member)
  return string.format('%s\n%010d\n%s', barrier, tonumber(string.match(path, '%d+$') or 0), member)
end
