--- Build a key: the namespace's own (workflow nil) or a workflow's. A free-form id always comes last.
local function keyOf(base, workflow, kind, id)
  if not workflow then return id and base .. ':' .. kind .. ':' .. id or base .. ':' .. kind end
  if not id then return base .. ':' .. workflow .. ':' .. kind end
  return base .. ':' .. workflow .. ':' .. kind .. ':' .. id
end
