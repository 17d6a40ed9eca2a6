--- A child's link to its parent as a table: `workflow`, `id` and `run` are the parent's; `barrier` is what of it waits
--- for the child (empty: a flow), `path` where the child's end is written among its checkpoints, `most` how many of the
--- barrier may run at once (0: all), and `policy` (fail | continue) what the child's failure means.
local function readParent(link)
  local workflow, id, run, barrier, path, most, policy = string.match(
    link, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(%d+)\n([^\n]*)$')
  return {
    workflow = workflow, id = id, run = run, barrier = barrier, path = path, most = tonumber(most), policy = policy,
  }
end
