from collections.abc import Sequence
from dataclasses import dataclass

from ..calling import Caller
from ..link import Argument


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is sent. ``at``: empty for now, ``+ms`` from now, or an instant in ms."""

    workflow: str
    id: str
    spec: str
    data: str
    at: str = ""
    unique: str = "live"
    waiter: str = ""


async def add_jobs(
    call: Caller, *, producer: str, number: int, jobs: Sequence[NewJob]
) -> list[tuple[str, str] | None]:
    """Add jobs. For each None, or nonce and state of the job that has the id."""
    arguments: list[Argument] = [producer, number]
    for new in jobs:
        arguments += (new.workflow, new.id, new.spec, new.data, new.at, new.unique, new.waiter)
    answers: list[bytes] = await call("add_jobs", *arguments)
    return [_collision(answer) for answer in answers]


def _collision(answer: bytes) -> tuple[str, str] | None:
    if not answer:
        return None
    run, _, state = answer.decode().partition(" ")
    return run, state
