--- A member that comes and goes at once. Of few short ones Redis makes a list that it searches from its beginning; one of
--- more than 64 bytes undoes that for good, and nobody's id has a line feed.
local LONG = 'this comes and goes at once, and is longer than what Redis keeps\nin a list'
