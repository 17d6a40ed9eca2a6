--- @include arm_wake
--- @include claim_ready when needed
--- @include claim_simply
--- @include expire_due when needed
--- @include fair_share when needed
--- @include first_instant when needed
--- @include key_of
--- @include live_refusals when needed
--- @include note_refusal when needed
--- @include promote_due when needed
--- @include read_limits
--- @include readmit_groups when needed

--- Claim up to `total` jobs of the workflows in `wants` ({ workflow, most }, in the order to try), within every cap; what
--- is due in them becomes runnable even where nothing is claimed (`due`: there may be something).
--- Whoever leaves runnable work behind while there is capacity wakes another worker.
--- Enters into `busy` whether something waits or runs for sure in a workflow, and into `claims` what the worker gets (see
--- `settle`), behind what is there. Returns the jobs as `workflow:id`, and the instant at which to look again (0: at once)
--- or nil.
local function reserve(base, token, lease, total, wants, due, now, busy, claims)
  local claimed, again, refusals = {}, nil, nil
  local namespace = readLimits(base)
  local function lookAt(instant) if instant and (again == nil or instant < again) then again = instant end end
  for index, want in ipairs(wants) do
    local workflow = want[1]
    if due then
      local wakes, expires = firstInstant(base, workflow, 'delayed'), firstInstant(base, workflow, 'expiring')
      if wakes and wakes <= now then wakes = promoteDue(base, workflow, now) end
      if expires and expires <= now then expires = expireDue(base, workflow, now) end
      lookAt(wakes)
      lookAt(expires)
    end
    local limits = readLimits(base, workflow)
    if not (namespace.paused or limits.paused) then
      local capacity = limits.concurrency
      if capacity < math.huge then capacity = capacity - redis.call('HLEN', keyOf(base, workflow, 'active')) end
      local share, till = math.huge, nil
      if namespace.concurrency < math.huge then
        refusals = refusals or liveRefusals(base, now)
        share, till = fairShare(base, workflow, refusals)
      end
      local asked = math.min(want[2], total - #claimed)
      local room = math.min(asked, capacity, share)
      local served, refusedUntil, asideUntil = 0, nil, nil
      local admits = due and firstInstant(base, workflow, 'throttled')
      if admits and admits <= now then admits = readmitGroups(base, workflow, now) end
      lookAt(admits)
      if room > 0 then
        if namespace.limiters or limits.limiters or limits.stream > 0 then
          served, refusedUntil, asideUntil = claimReady(base, workflow, index, room, token, lease, now, claims, claimed)
        else
          served = claimSimply(base, workflow, index, room, token, lease, now, claims, claimed)
        end
        lookAt(refusedUntil)
        lookAt(asideUntil)
      end
      local left = redis.call('EXISTS', keyOf(base, workflow, 'ready')) == 1
      -- who had no slot to fill was not refused, nor served
      if namespace.concurrency < math.huge and (asked > 0 or not left) then
        local wanted = asked > served and capacity > served
        local refused = left and wanted and share <= served
        noteRefusal(base, workflow, refused, served > 0, now, refusals)
        if refused then lookAt(till) end
      end
      if left and not refusedUntil and capacity > served and share > served then armWake(base, workflow) end
      busy[workflow] = busy[workflow] or left or served > 0
    end
  end
  return claimed, again
end
