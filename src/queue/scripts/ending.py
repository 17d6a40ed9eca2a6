from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from ..calling import Caller

Role = Literal["waiters", "watchers"]
NOT_THERE: Final = ("missing", "replaced")


class End(msgspec.Struct, frozen=True):
    """How a job ended (or that it is ``missing``, ``replaced`` or ``removed``), and the text of it."""

    state: str
    run: str
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a job's record said: its state (or ``missing``, ``replaced``), nonce, text of its end, and progress."""

    state: str
    run: str
    text: str
    progress: str


async def wait_jobs(call: Caller, *, process: str, jobs: Sequence[tuple[str, str, str]]) -> list[End | None]:
    """Look at jobs (workflow, id, run): the end, or None: it will be pushed to the process.

    There may be fewer answers than jobs: nothing was done for the rest.
    """
    answers = await call("wait_jobs", process, *(part for job in jobs for part in job))
    return [answer and End(*(part.decode() for part in answer)) for answer in answers]


async def watch_job(call: Caller, *, workflow: str, id: str, run: str, process: str) -> Look:
    """Look at a job; unless it has ended, everything that happens to it will be pushed to the process."""
    return Look(*(part.decode() for part in await call("watch_job", workflow, id, run, process)))


async def unwait_jobs(call: Caller, *, process: str, jobs: Sequence[tuple[str, str, Role]]) -> None:
    """A process waits for the ends of jobs (workflow, id, role), or watches them, no longer."""
    await call("unwait_jobs", process, *(part for job in jobs for part in job))
