--- How long the record of a job that has completed stays where its spec does not say it, in ms.
local RESULT_TTL = 300000
