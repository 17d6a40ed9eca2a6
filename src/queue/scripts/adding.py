from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ..calling import Caller
from ..wire import Argument


class NewJob(msgspec.Struct, frozen=True):
    """A job as it is sent.

    ``at``: empty for now, ``+ms`` from now, or an instant in ms. ``waiter``: who hears of it from the start, as
    ``waiters process`` or ``watchers process``. ``dedup``: ``throttle ms key`` or ``debounce ms key``.
    """

    workflow: str
    id: str
    spec: str
    data: str
    at: str = ""
    unique: str = "live"
    waiter: str = ""
    dedup: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """The job that stands in the place of one that was not added."""

    run: str
    state: str
    id: str


async def add_jobs(call: Caller, *, producer: str, number: int, jobs: Sequence[NewJob]) -> list[Standing | None]:
    """Add jobs. For each None, or the job that stands in its place."""
    arguments: list[Argument] = [producer, number]
    for new in jobs:
        arguments += (new.workflow, new.id, new.spec, new.data, new.at, new.unique, new.waiter, new.dedup)
    answers: list[bytes] = await call("add_jobs", *arguments)
    return [_collision(answer) for answer in answers]


def _collision(answer: bytes) -> Standing | None:
    return Standing(*answer.decode().split(" ", 2)) if answer else None
