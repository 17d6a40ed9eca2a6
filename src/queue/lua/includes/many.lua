--- So many members at once are worth to undo a list that Redis would make of them (see `LONG`).
local MANY = 16
