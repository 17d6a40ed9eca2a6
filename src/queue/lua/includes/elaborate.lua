--- What a claim begins with where it takes to read the record to complete its job.
local ELABORATE = '!'
