--- Bring some of the groups with waiting jobs in line with the cap of groups.
--- keys: base
--- args: workflow, cursor
--- returns: the next cursor, 0 after the last
--- @include arm_wake
--- @include key_of
--- @include maintain_group
local page = redis.call('SSCAN', keyOf(KEYS[1], ARGV[1], 'groups'), ARGV[2], 'COUNT', 50)
for _, group in ipairs(page[2]) do maintainGroup(KEYS[1], ARGV[1], group) end
if #page[2] > 0 then armWake(KEYS[1], ARGV[1]) end
return tonumber(page[1])
