"""What may be left of parents and children; the rules of ``support.leftovers`` for their keys."""

import json
from collections.abc import Iterator
from typing import Literal

from support.stored import Key, Stored, state_in

ENDED = ("completed", "failed", "cancelled")
FOR_GOOD = ("completed", "cancelled")


def barrier(stored: Stored, key: Key, workflow: str, job: str) -> Iterator[str]:
    """Children that a job waits for: it may still go on, and each of them will end."""
    yield from _of_a_parent(stored, key, workflow, job)
    for member in key.members:
        child, child_id = member.split("\n")[-1].split(":", 1)
        state = _state(stored, child, child_id)
        if state is None or state in ENDED:
            yield f"waits for {child}:{child_id}, which {'is ' + state if state else 'has no record'}"


def held(stored: Stored, key: Key, workflow: str, job: str) -> Iterator[str]:
    """Children that a job holds back."""
    yield from _of_a_parent(stored, key, workflow, job)
    for member in key.members:
        name, _, child = member.split("\n")
        if f"{name}\n{child}" not in stored.members(f"{workflow}:barrier:{job}"):
            yield f"holds back {child!r}, which it does not wait for"
        if child.split(":", 1)[1] not in stored.members(f"{child.split(':', 1)[0]}:parked"):
            yield f"holds back {child!r}, which is not parked"


def cascades(_stored: Stored, key: Key, _workflow: str, _job: str) -> Iterator[str]:
    """Nothing is to follow its parent any more."""
    yield f"jobs are still to follow their parents: {', '.join(map(repr, key.members))}"


def cascade(stored: Stored, key: Key, _workflow: str, name: str) -> Iterator[str]:
    """The jobs that are to follow their parent are known."""
    if key.expires or name not in stored.members("cascades"):
        yield "is not in cascades"


def kept_by_parent(stored: Stored, workflow: str, job: str) -> Literal["must", "may"] | None:
    """Whether a child that has ended stays because its parent may need it."""
    record = stored.job(workflow, job)
    if record is None or "parent" not in record.values or _state(stored, workflow, job) not in ENDED:
        return None
    above, above_id, *_, path, _, _ = record.values["parent"].split("\n")
    state = _state(stored, above, above_id)
    if state is None or f"{path}\n{workflow}:{job}" not in stored.members(f"{above}:children:{above_id}"):
        return None
    if state not in FOR_GOOD:
        return "must"
    # it does if it ended before its parent did
    return "may" if kept_by_parent(stored, above, above_id) else None


def is_kept_by_nobody(key: Key) -> Iterator[str]:
    """A job that has ended for good, and was kept because its parent was, expires after that."""
    ended = key.values.get("state") in FOR_GOOD
    if ended and "parent" in key.values and not key.expires and json.loads(key.values["spec"]).get("result_ttl") != -1:
        yield "has ended as its parent has, and would stay for ever"


def _of_a_parent(stored: Stored, key: Key, workflow: str, job: str) -> Iterator[str]:
    state = _state(stored, workflow, job)
    if key.expires:
        yield "would expire, and what it says with it"
    if state is None or state in FOR_GOOD:
        yield f"its job {'is ' + state if state else 'has no record'}"


def _state(stored: Stored, workflow: str, job: str) -> str | None:
    record = stored.job(workflow, job)
    claimed = "active" in stored.places.get((workflow, job), [])
    return None if record is None else state_in(record.values, claimed=claimed)
