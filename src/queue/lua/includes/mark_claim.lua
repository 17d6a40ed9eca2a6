--- @include elaborate
--- @include key_of
--- @include write_start

--- The end of an active job takes more from now on than its claim (false: it has none) has said so far: `mark` is BESIDE or
--- ELABORATE.
local function markClaim(base, workflow, id, claim, mark)
  local is = claim and string.sub(claim, 1, 1)
  if is and is ~= ELABORATE and is ~= mark then
    if mark == ELABORATE then writeStart(base, workflow, id, claim) end
    redis.call('HSET', keyOf(base, workflow, 'active'), id, mark .. string.sub(claim, 2))
  end
end
