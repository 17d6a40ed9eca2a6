--- How many jobs of all workflows are claimed, once it was looked up in this script.
local RUNNING_TOTAL = { is = nil }
