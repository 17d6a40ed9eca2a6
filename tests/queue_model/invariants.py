"""What must be so after every step: what is stored is what the model says, at the places it says, and nothing else."""

import json
import math
from collections import Counter
from collections.abc import Mapping

from support.leftovers import leftovers_of
from support.rate_limits import starts_in

from .claims import budgets_of, opening
from .clock import Clock
from .driver import Held
from .jobs import ENDED, NEVER, Job
from .model import Model


def check(model: Model, held: Held, clock: Clock) -> None:
    """Compare all that is stored with the model."""
    left_over = leftovers_of(held.stored)
    assert not left_over, left_over
    stored = {name for name in held.hashes if ":j:" in name}
    expected = {f"{workflow}:j:{job_id}" for workflow, job_id in model.jobs}
    assert stored == expected, f"records of {stored - expected} too many, of {expected - stored} missing"
    for job in model.jobs.values():
        _check_record(job, held, clock)
    for workflow in model.workflows:
        _check_places(model, workflow, held, clock)
        _check_order(model, workflow, held, clock)
        _check_schedules(model, workflow, held, clock)
    running = Counter(job.workflow for job in model.having("active"))
    assert held.hashes.get("running", {}) == {workflow: str(count) for workflow, count in running.items()}
    _check_limiters(model, held, clock)
    _check_windows(model, held, clock)
    _check_refusals(model, held)


def _check_record(job: Job, held: Held, clock: Clock) -> None:
    name = f"{job.workflow}:j:{job.id}"
    record, claim = held.hashes[name], held.hashes.get(f"{job.workflow}:active", {}).get(job.id, "")
    if claim and claim[0] != "!":
        # the claim says it for the record
        assert record.keys().isdisjoint(("state", "started")), f"{name}: {claim!r}, {record}"
        record = {**record, "state": "active", "started": claim.split()[1]}
    found = {
        "state": record["state"].partition(" ")[0] if "state" in record else None,
        "run": json.loads(record["spec"])["run"],
        "data": record["data"],
        "token": claim[1:].partition(" ")[0],
        "failures": int(record.get("failures", 0)),
        "stalls": int(record.get("stalls", 0)),
        "cancel": record.get("cancel"),
        "holds": "holds" in record,
        "started": "started" in record,
        "awaits": record.get("awaits", ""),
    }
    expected = {
        "state": None if job.state == "waiting" else job.state,
        "run": job.spec.run,
        "data": job.data,
        "token": job.token,
        "failures": job.failures,
        "stalls": job.stalls,
        "cancel": job.cancel,
        "holds": job.holds,
        "started": job.started,
        "awaits": "\n".join(job.awaits),
    }
    if job.state == "active":
        del found["holds"], expected["holds"]
    if job.state in ENDED:
        for field in ("failures", "stalls", "started", "cancel", "holds", "awaits"):
            del found[field], expected[field]
        field = {"completed": "result", "failed": "failure", "cancelled": "reason"}[job.state]
        text = record[field]
        assert (json.loads(text)["type"] if job.state == "failed" else text) == job.text, f"{name}: {field} is {text!r}"
    assert found == expected, f"{name}: {record}"
    assert held.hashes.get(f"{job.workflow}:steps:{job.id}", {}) == job.steps
    events = [tuple(event.split("\n", 3)) for event in held.zset(f"{job.workflow}:events:{job.id}")]
    # those of a name in the order in which they came
    expected_events = sorted(job.events, key=lambda event: event[0])
    assert [(event[0], *event[2:]) for event in events] == expected_events, f"{name}: events {events}"
    assert held.lists.get(f"{job.workflow}:log:{job.id}", []) == job.log
    if job.state in ENDED and job.gone != NEVER:
        _check_ttl(name, job.gone, held, clock)
    else:
        assert name not in held.ttls


def _check_claim(workflow: str, job_id: str, claim: str, held: Held) -> None:
    """A claim says no less than it takes to complete its job."""
    record, mark = held.hashes[f"{workflow}:j:{job_id}"], claim[0]
    beside = [kind for kind in ("steps", "events", "log") if f"{workflow}:{kind}:{job_id}" in held.stored.keys]
    assert mark in ".+!"
    assert mark != "." or not beside, f"{job_id}: {claim!r} says nothing of {beside}"
    if mark == "!":
        return
    spec = json.loads(record["spec"])
    elaborate = {"cancel", "watchers", "parent", "kids", "stalls"} & record.keys() | {"result_ttl"} & spec.keys()
    assert not elaborate, f"{job_id}: {claim!r} says nothing of {elaborate}"
    said, _, group = claim[1:].partition("\n")
    assert group == spec.get("group", "")
    assert said.split()[4:] == record.get("waiters", "").split()


def _check_places(model: Model, workflow: str, held: Held, clock: Clock) -> None:
    """Each job is where its state says, and nowhere else."""

    def instants(state: str) -> dict[str, int]:
        return {job.id: job.instant for job in model.having(state, workflow=workflow)}

    active = {job.id: job.deadline for job in model.having("active", workflow=workflow)}
    claims = held.hashes.get(f"{workflow}:active", {})
    assert claims.keys() == active.keys()
    for job_id, claim in claims.items():
        earliest, latest = clock.on_server(active[job_id])
        assert earliest <= int(claim.split()[2]) <= latest, f"{workflow}, {job_id}: {claim!r}"
        _check_claim(workflow, job_id, claim, held)
    _check_instants(f"{workflow}:delayed", held, clock, instants("delayed"))
    _check_instants(f"{workflow}:parked", held, clock, instants("parked"))
    failed = {job.id: job.finished for job in model.failed(workflow)}
    assert list(held.zset(f"{workflow}:failed")) == list(failed)
    _check_instants(f"{workflow}:failed", held, clock, failed)
    for state in ("completed", "cancelled"):
        gone = {job.id: job.gone for job in model.having(state, workflow=workflow)}
        _check_instants(f"{workflow}:{state}", held, clock, gone, forgotten=held.now)
    unstarted = {
        job.id: job.unless_started for job in model.jobs.values() if job.workflow == workflow and job.unless_started
    }
    _check_instants(f"{workflow}:expiring", held, clock, unstarted)
    groups = {job.spec.group for job in model.jobs.values() if job.workflow == workflow and job.spec.group}
    slots = {group: str(len(jobs)) for group in groups if (jobs := model.holding(workflow, group))}
    assert held.hashes.get(f"{workflow}:ga", {}) == slots


def _check_instants(
    name: str, held: Held, clock: Clock, expected: Mapping[str, int], forgotten: float = -math.inf
) -> None:
    """A zset holds exactly these members, at these instants; and such as may be ``forgotten``, being older."""
    zset = held.zset(name)
    for member, score in zset.items():
        if member not in expected:
            assert score <= forgotten, f"{name} holds {member!r}, which is not to be there"
            continue
        instant = expected[member]
        if instant == NEVER:
            assert score == math.inf, f"{name}: {member!r} at {score}, and not for ever"
        else:
            earliest, latest = clock.on_server(instant)
            assert earliest <= math.floor(score) <= latest, (
                f"{name}: {member!r} at {score}, not within {earliest}..{latest}"
            )
    assert expected.keys() <= zset.keys(), f"{name} lacks {expected.keys() - zset.keys()}"


def _check_order(model: Model, workflow: str, held: Held, clock: Clock) -> None:
    """``ready`` is what may be claimed, in order; each group's jobs are in order; ``groups`` are those with jobs."""
    limited = bool(model.limits[""].limiters) or model.limits[workflow].chosen is not None
    throttled: Mapping[str, float] = held.zset(f"{workflow}:throttled")
    ready = held.zset(f"{workflow}:ready")
    line = {job.member: job for job in model.line(workflow)}
    # where no limiter is left, a group comes back with the next claim, or with its next job
    aside = [
        job
        for member, job in line.items()
        if member[0] == "g" and job.spec.group in throttled and (limited or member not in ready)
    ]
    for job in aside:
        opens = opening(model, budgets_of(model, job))
        _, latest = clock.on_server(opens)
        until = throttled[job.spec.group]
        assert job.member not in ready
        assert not job.started, f"{job.id} starts nothing, and its group {job.spec.group} is kept from it"
        assert until <= held.now or until <= latest, (
            f"group {job.spec.group} is kept aside for longer than its budget is"
        )
    expected = [member for member, job in line.items() if job not in aside]
    assert list(ready) == expected, f"ready of {workflow} is {list(ready)}, not {expected}"
    groups: dict[str, list[Job]] = {}
    for job in model.having("waiting", workflow=workflow):
        if job.queues_in_group:
            groups.setdefault(job.spec.group, []).append(job)
    assert held.sets.get(f"{workflow}:groups", frozenset()) == groups.keys()
    stored = held.names(f"{workflow}:g:")
    assert stored.keys() == groups.keys()
    for group, jobs in groups.items():
        order = [job.id for job in sorted(jobs, key=lambda job: job.place)]
        assert list(held.zset(stored[group])) == order, f"group {group} has {held.zset(stored[group])}, not {order}"


def _check_schedules(model: Model, workflow: str, held: Held, clock: Clock) -> None:
    schedules = {name: schedule for (owner, name), schedule in model.schedules.items() if owner == workflow}
    _check_instants(f"{workflow}:due", held, clock, {name: schedule.due for name, schedule in schedules.items()})
    assert held.names(f"{workflow}:schedule:").keys() == schedules.keys()
    for name, schedule in schedules.items():
        fields = held.hashes[f"{workflow}:schedule:{name}"]
        found = (fields["data"], fields["timing"], fields["overlap"], "paused" in fields, fields.get("last_job"))
        assert found == (schedule.data, schedule.timing, schedule.overlap, schedule.paused, schedule.last_job)
        counts = int(fields.get("fires", 0)), int(fields.get("skipped", 0))
        assert counts == (schedule.fires, schedule.skipped)


def _check_limiters(model: Model, held: Held, clock: Clock) -> None:
    """Every start is counted, once, for as long as its window lasts."""
    windows = {name: limiter.window for name, limiter in model.limits[""].limiters.items()}
    for key, starts in model.starts.items():
        window = windows.get(key.partition(":")[0], 0)
        counted = [start for start in starts if start > model.now - window]
        stored = starts_in(held.lists.get(f"@limiter:{key}", []))
        assert len(stored) >= len(counted), f"limiter {key} counts {stored}, not the starts at {counted}"
        for start, score in zip(reversed(counted), reversed(stored), strict=False):
            earliest, latest = clock.on_server(start)
            assert earliest <= score <= latest, f"limiter {key} counts {score}, not a start at {earliest}"


def _check_windows(model: Model, held: Held, clock: Clock) -> None:
    for workflow in model.workflows:
        stored = held.names(f"{workflow}:dedup:")
        keys = {key for owner, key in model.windows if owner == workflow}
        assert stored.keys() == keys
        for key in keys:
            run, holder, until = model.windows[workflow, key]
            assert held.lists[stored[key]] == [f"{run} {holder}"]
            _check_ttl(stored[key], until, held, clock)


def _check_ttl(name: str, until: int, held: Held, clock: Clock) -> None:
    earliest, latest = clock.on_server(until)
    left = held.ttls[name]
    assert earliest - held.now <= left <= latest - held.asked, f"{name} expires in {left} ms"


def _check_refusals(model: Model, held: Held) -> None:
    """The workflows that the namespace cap has refused are those that it has."""
    stored = held.zset("capped").keys()
    for workflow in model.refusals.keys() - stored:
        # a group whose own budget is spent does not stand in line, so its workflow has nothing to be refused
        assert not held.zset(f"{workflow}:ready"), f"the refusal of {workflow} is forgotten, and it has work"
        del model.refusals[workflow]
    assert stored == model.refusals.keys()
    assert held.zset("capped:seen").keys() == stored
