--- How long a result may be, in bytes, that is told along with its job's end.
local PUBLISHED_WHOLE = 16384
