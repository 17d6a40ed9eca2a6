from dataclasses import dataclass
from typing import Literal

from ..calling import Caller

Role = Literal["waiters", "watchers"]


@dataclass(frozen=True, slots=True)
class Look:
    """What a job's record said: its state (or ``missing``, ``replaced``), nonce, text of its end, and progress."""

    state: str
    run: str
    text: str
    progress: str


async def wait_job(call: Caller, *, workflow: str, id: str, run: str, process: str) -> Look:
    """Look at a job; unless it has ended, its end will be pushed to the process."""
    return Look(*(part.decode() for part in await call("wait_job", workflow, id, run, process)))


async def watch_job(call: Caller, *, workflow: str, id: str, run: str, process: str) -> Look:
    """Look at a job; unless it has ended, everything that happens to it will be pushed to the process."""
    return Look(*(part.decode() for part in await call("watch_job", workflow, id, run, process)))


async def unwait_job(call: Caller, *, workflow: str, id: str, role: Role, process: str) -> None:
    """A process waits for a job's end, or watches it, no longer."""
    await call("unwait_job", workflow, id, role, process)
