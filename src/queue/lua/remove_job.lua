--- Remove a job and everything of it. The claim of one that runs is lost, and its worker told.
--- keys: base
--- args: workflow, id, nonce
--- returns: 1 removed | -1 there is no such job
--- @include answer_once
--- @include drop_job
return answerOnce(KEYS[1], ARGV[3], function() return dropJob(KEYS[1], ARGV[1], ARGV[2]) end)
