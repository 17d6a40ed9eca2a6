--- What a claim begins with that says all but this: checkpoints, events or a log lie beside the record of its job.
local BESIDE = '+'
