from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ..calling import Caller
from ..spec import spec_text
from ..wire import Argument

MOST_AT_ONCE: Final = 200
UNLIKE: Final = 3


class NewJob(msgspec.Struct, frozen=True):
    """A job as it is sent: its spec in two parts, its nonce ``run`` and the ``rest``.

    ``at``: empty for now, ``+ms`` from now, or an instant in ms. ``unique``: ``live``, ``retained``, or ``fresh`` where
    the id was made up. ``waiter``: who hears of it from the start, as ``waiters process`` or ``watchers process``.
    ``dedup``: ``throttle ms key`` or ``debounce ms key``.
    """

    workflow: str
    id: str
    run: str
    rest: str
    data: str
    at: str = ""
    unique: str = "live"
    waiter: str = ""
    dedup: str = ""

    @property
    def spec(self) -> str:
        """Its spec."""
        return spec_text(self.run, self.rest)


@dataclass(frozen=True, slots=True)
class Standing:
    """The job that stands in the place of one that was not added."""

    run: str
    state: str
    id: str


async def add_jobs(call: Caller, *, producer: str, number: int, jobs: Sequence[NewJob]) -> list[Standing | None]:
    """Add jobs. For each None, or the job that stands in its place."""
    arguments: list[Argument] = [producer, number]
    at = 0
    while at < len(jobs):
        first, those = jobs[at], list[Argument]()
        while at < len(jobs) and _alike(jobs[at], first):
            those += (jobs[at].id, jobs[at].run, jobs[at].data)
            at += 1
        arguments += (first.workflow, first.rest, first.at, first.unique, first.waiter, first.dedup)
        arguments += (len(those) // 3, *those)
    answers: list[bytes] = await call("add_jobs", *arguments)
    return [_collision(answer) for answer in answers]


def count_at_once(jobs: Sequence[NewJob]) -> int:
    """How many of some jobs, from the first, go in one call.

    One that differs in more than its payload from that before it, as by its group, counts for three: it takes Redis so
    much longer.
    """
    weight = 0
    for n, new in enumerate(jobs[:MOST_AT_ONCE]):
        weight += UNLIKE if n and not _alike(new, jobs[n - 1]) else 1
        if weight > MOST_AT_ONCE:
            return n
    return min(len(jobs), MOST_AT_ONCE)


def _alike(new: NewJob, first: NewJob) -> bool:
    """Whether two jobs differ in nothing but their ids, nonces and payloads."""
    return (
        new.rest == first.rest
        and new.workflow == first.workflow
        and new.at == first.at
        and new.waiter == first.waiter
        and new.unique == first.unique
        and new.dedup == first.dedup
    )


def _collision(answer: bytes) -> Standing | None:
    return Standing(*answer.decode().split(" ", 2)) if answer else None
