--- @include arm_wake
--- @include claim_ready
--- @include expire_due
--- @include fair_share
--- @include key_of
--- @include note_refusal
--- @include promote_due
--- @include read_limits
--- @include readmit_groups
--- @include rest_counter

--- Claim up to `total` jobs of the workflows in `wants` ({ workflow, most }, in the order to try), within every cap; what
--- is due in them becomes runnable even where nothing is claimed.
--- Whoever leaves runnable work behind while there is capacity wakes another worker.
--- Returns the claims and the instant at which to look again (0: at once), or nil.
local function reserve(base, token, lease, total, wants, now)
  local claims, again = {}, nil
  local namespace = readLimits(base)
  local function lookAt(instant) if instant and (again == nil or instant < again) then again = instant end end
  for index, want in ipairs(wants) do
    local workflow = want[1]
    lookAt(promoteDue(base, workflow, now))
    lookAt(expireDue(base, workflow, now))
    local limits = readLimits(base, workflow)
    if not (namespace.paused or limits.paused) then
      local capacity = limits.concurrency
      if capacity < math.huge then capacity = capacity - redis.call('SCARD', keyOf(base, workflow, 'active')) end
      local share = fairShare(base, workflow, now)
      local asked = math.min(want[2], total - #claims)
      local room = math.min(asked, capacity, share)
      local served, refusedUntil, asideUntil = 0, nil, nil
      lookAt(readmitGroups(base, workflow, now))
      if room > 0 then
        served, refusedUntil, asideUntil = claimReady(base, workflow, index, room, token, lease, now, claims)
        lookAt(refusedUntil)
        lookAt(asideUntil)
      end
      local left = redis.call('EXISTS', keyOf(base, workflow, 'ready')) == 1
      -- who had no slot to fill was not refused, nor served
      if namespace.concurrency < math.huge and (asked > 0 or not left) then
        local wanted = asked > served and capacity > served
        noteRefusal(base, workflow, left and wanted and share <= served, served > 0, now)
      end
      if left and not refusedUntil and capacity > served and share > served then armWake(base, workflow) end
      if not left then restCounter(base, workflow) end
    end
  end
  return claims, again
end
