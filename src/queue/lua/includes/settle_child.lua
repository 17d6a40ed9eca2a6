--- @include deliver_child
--- @include fail_record

--- A child has ended (completed | failed | cancelled | removed): its parent gets the result. Where that fails the parent
--- for good, the parent's own parent hears of it in turn, up the tree.
local function settleChild(base, workflow, id, parent, state, text, now)
  while parent do
    local failed = deliverChild(base, workflow, id, parent, state, text, now)
    if not failed then return end
    failRecord(base, failed.workflow, failed.id, failed.spec, failed.failure, now, failed.told)
    workflow, id, parent, state, text = failed.workflow, failed.id, failed.told[3], 'failed', failed.failure
  end
end
