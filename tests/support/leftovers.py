"""What may be left in a namespace: every key has a TTL or an owner, and the structures agree with each other.

``RULES`` says it, a line a kind of key. A rule's check yields what is wrong with one key, in words.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import pytest

from support.client import Client
from support.family_leftovers import barrier, cascade, cascades, held, is_kept_by_nobody, kept_by_parent
from support.servers import Server
from support.stored import Key, Stored, read, state_in

SETTLES_WITHIN = 20.0  # the last commands of a test's clients may still be on their way

ENDED = ("completed", "failed", "cancelled")
LIVE = ("ready", "groups", "active", "delayed", "parked")

Complaints = Iterator[str]
Check = Callable[[Stored, Key, str, str], Complaints]


def leftovers(client: Client, base: str) -> list[str]:
    """What is left below the base without a TTL or an owner, and where structures disagree: one line each."""
    return leftovers_of(read(client, base))


def leftovers_of(stored: Stored) -> list[str]:
    """As ``leftovers``, of a namespace that has been read."""
    wrong: list[str] = []
    for name, key in sorted(stored.keys.items()):
        for pattern, check in PATTERNS:
            if named := pattern.fullmatch(name):
                parts = named.groupdict()
                wrong += [f"{name}: {text}" for text in check(stored, key, parts.get("wf", ""), parts.get("id", ""))]
                break
        else:
            if not key.expires:
                wrong.append(f"{name}: has no TTL, and no rule names an owner")
    return wrong


def _record(stored: Stored, key: Key, workflow: str, job: str) -> Complaints:
    places = stored.places.get((workflow, job), [])
    ended = [place for place in places if place in ENDED]
    kept = kept_by_parent(stored, workflow, job)
    if kept == "must" and key.expires:
        yield "would expire, while its parent may need it"
    if kept:
        return
    yield from is_kept_by_nobody(key)
    state = state_in(key.values, claimed="active" in places)
    if key.values and places and state not in {_state_at(place) for place in places}:
        yield f"says that it is {state}, and is in {', '.join(places)}"
    if len(places) > 1:
        yield f"is in more than one place: {', '.join(places)}"
    elif not places and not key.expires:
        yield "has no TTL and is nowhere: it neither waits, nor runs, nor has ended"
    elif not ended and places and key.expires:
        yield f"is live ({places[0]}) and would expire"
    elif ended == ["failed"] and key.expires:
        yield "has failed and would expire, while keep_failed owns it"
    elif ended and ended != ["failed"] and not key.expires and stored.members(f"{workflow}:{ended[0]}")[job] < math.inf:
        yield f"is {ended[0]} with an expiry, and has no TTL"


def _state_at(place: str) -> str:
    return "waiting" if place == "ready" or place.startswith("g:") else place


def _of_a_job(stored: Stored, key: Key, workflow: str, job: str) -> Complaints:
    record = stored.job(workflow, job)
    if key.expires:
        return
    if record is None:
        yield "its job has no record"
    elif record.expires:
        yield "has no TTL, while its job's record will expire"


def _ready(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    for member in key.members:
        kind, _, name = member.partition(":")
        if kind == "j" and stored.job(workflow, name) is None:
            yield f"holds {member}, which has no record"
        if kind == "g" and not stored.members(f"{workflow}:g:{name}"):
            yield f"holds {member}, which has no waiting jobs"


def _group_waiting(stored: Stored, key: Key, workflow: str, group: str) -> Complaints:
    yield from _members_have_records(stored, key, workflow, "")
    if group not in stored.members(f"{workflow}:groups"):
        yield "is not in groups"
    held = group in stored.members(f"{workflow}:ga") or group in stored.members(f"{workflow}:throttled")
    if not held and f"g:{group}" not in stored.members(f"{workflow}:ready"):
        yield "waits, nothing of it runs, and it is not in ready: it would wait for ever"


def _group_slots(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    active, held = stored.members(f"{workflow}:active"), Counter[str]()
    for name, record in stored.keys.items():
        job = name.removeprefix(f"{workflow}:j:")
        keeps = "holds" in record.members and record.values.get("state") not in ENDED
        if job != name and (job in active or keeps):
            held[json.loads(record.values["spec"]).get("group", "")] += 1
    yield from (
        f"says that {count} jobs of {group!r} run, or keep it, and {held[group]} do"
        for group, count in key.values.items()
        if count != str(held[group])
    )


def _groups(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    yield from (
        f"holds {group!r}, which has no waiting jobs"
        for group in key.members
        if not stored.members(f"{workflow}:g:{group}")
    )


def _throttled(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    yield from (
        f"holds {group!r}, which has no waiting jobs"
        for group, until in key.members.items()
        if until > stored.now and not stored.members(f"{workflow}:g:{group}")
    )


def _active(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _members_have_records(stored, key, workflow, "")
    counted = stored.keys["running"].values.get(workflow, "0") if "running" in stored.keys else "0"
    if int(counted) != len(key.members):
        yield f"holds {len(key.members)} claims, and running says {counted}"


def _running(stored: Stored, key: Key, _workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    for workflow, counted in key.values.items():
        if f"{workflow}:active" not in stored.keys:
            yield f"says that {counted} jobs of {workflow!r} run, and none does"


def _members_have_records(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    yield from (f"holds {job!r}, which has no record" for job in key.members if stored.job(workflow, job) is None)


def _expiring(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _members_have_records(stored, key, workflow, "")
    for job in key.members:
        record = stored.job(workflow, job)
        if record is not None and "started" in record.members:
            yield f"holds {job!r}, which has been started"


def _ended_with_expiry(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    for job, expiry in key.members.items():
        if expiry > stored.now and stored.job(workflow, job) is None:
            yield f"holds {job!r}, which has no record before its expiry"


def _counter(stored: Stored, _key: Key, workflow: str, _id: str) -> Complaints:
    if not any(f"{workflow}:{kind}" in stored.keys for kind in LIVE):
        yield "is left while nothing waits and nothing is claimed"


def _due(stored: Stored, key: Key, workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    yield from (
        f"holds {schedule!r}, which is no schedule"
        for schedule in key.members
        if f"{workflow}:schedule:{schedule}" not in stored.keys
    )


def _schedule(stored: Stored, _key: Key, workflow: str, schedule: str) -> Complaints:
    if schedule not in stored.members(f"{workflow}:due"):
        yield "is never due"


def _refusals(stored: Stored, key: Key, _workflow: str, _id: str) -> Complaints:
    if not key.expires:
        yield from (
            f"holds {workflow!r}, which has nothing to run"
            for workflow in key.members
            if f"{workflow}:ready" not in stored.keys
        )


def _workers(stored: Stored, key: Key, _workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)
    yield from (
        f"holds {worker!r}, which says nothing" for worker in key.members if f"@worker:{worker}" not in stored.keys
    )


def _must_expire(_stored: Stored, key: Key, _workflow: str, _id: str) -> Complaints:
    if not key.expires:
        yield "has no TTL"


def _must_not_expire(key: Key) -> Complaints:
    if key.expires:
        yield "would expire, and what it says with it"


def _stays(_stored: Stored, key: Key, _workflow: str, _id: str) -> Complaints:
    yield from _must_not_expire(key)


RULES: Mapping[str, Check] = {
    "<wf>:j:<id>": _record,
    "<wf>:steps:<id>": _of_a_job,
    "<wf>:events:<id>": _of_a_job,
    "<wf>:log:<id>": _of_a_job,
    "<wf>:barrier:<id>": barrier,
    "<wf>:held:<id>": held,
    "<wf>:children:<id>": _of_a_job,
    "<wf>:ready": _ready,
    "<wf>:g:<id>": _group_waiting,
    "<wf>:ga": _group_slots,
    "<wf>:groups": _groups,
    "<wf>:throttled": _throttled,
    "<wf>:active": _active,
    "<wf>:delayed": _members_have_records,
    "<wf>:parked": _members_have_records,
    "<wf>:expiring": _expiring,
    "<wf>:failed": _members_have_records,
    "<wf>:completed": _ended_with_expiry,
    "<wf>:cancelled": _ended_with_expiry,
    "<wf>:pc": _counter,
    "<wf>:limits": _stays,
    "<wf>:due": _due,
    "<wf>:schedule:<id>": _schedule,
    "<wf>:wake": _must_expire,
    "running": _running,
    "cascades": cascades,
    "@cascade:<id>": cascade,
    "capped": _refusals,
    "capped:seen": _refusals,
    "limits": _stays,
    "meta": _stays,
    "swept": _stays,
    "workers": _workers,
    "workflows": _stays,
}


def _as_regex(pattern: str) -> str:
    return re.escape(pattern).replace("<wf>", r"(?P<wf>[A-Za-z0-9_.\-]+)").replace("<id>", r"(?P<id>.+)")


PATTERNS: Sequence[tuple[re.Pattern[str], Check]] = [
    (re.compile(_as_regex(pattern), re.DOTALL), check) for pattern, check in RULES.items()
]


def check_namespaces(server: Server, beginning: str) -> None:
    """Fail the test if anything is left over in a namespace whose id begins so; then delete these namespaces."""
    wrong = _settled_leftovers(server, beginning)
    with server.client() as client:
        for names in client.keys(f"lanner:{{{beginning}*"):
            client.many([("UNLINK", name) for name in names])
    if wrong:
        pytest.fail("left over in Redis after the test:\n  " + "\n  ".join(wrong), pytrace=False)


def _settled_leftovers(server: Server, beginning: str) -> list[str]:
    deadline = time.monotonic() + SETTLES_WITHIN
    with server.client() as client:
        while True:
            stored = chain.from_iterable(client.keys(f"lanner:{{{beginning}*"))
            bases = {name.partition("}")[0] + "}" for name in stored}
            wrong = [f"{base} {text}" for base in sorted(bases) for text in leftovers(client, base)]
            if not wrong or time.monotonic() > deadline:
                return wrong
            time.sleep(0.05)
