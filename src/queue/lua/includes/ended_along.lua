--- How much of what was put off a call does along with its own work.
local ENDED_ALONG = 50
