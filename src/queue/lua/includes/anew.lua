--- How many fields of a completed job are new where its record was gone: state, result and finished.
local ANEW = 3
