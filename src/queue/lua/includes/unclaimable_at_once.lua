--- How many entries that turn out to be nothing to claim a call looks at beyond those that it wants.
local UNCLAIMABLE_AT_ONCE = 64
