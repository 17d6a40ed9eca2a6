--- What a claim begins with that says all it takes to complete its job (see `enterActive`).
local PLAIN = '.'
