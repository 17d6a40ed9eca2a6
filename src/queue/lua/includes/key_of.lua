--- Build a key: the namespace's own (workflow nil) or a workflow's. A free-form id always comes last.
local function keyOf(base, workflow, kind, id)
  local key = workflow and base .. ':' .. workflow .. ':' .. kind or base .. ':' .. kind
  return id and key .. ':' .. id or key
end
