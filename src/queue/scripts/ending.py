from dataclasses import dataclass

from ..calling import Caller


@dataclass(frozen=True, slots=True)
class Look:
    """What a job's record said: its state (or ``missing``, ``replaced``), nonce, and text of its end."""

    state: str
    run: str
    text: str


async def wait_job(call: Caller, *, workflow: str, id: str, run: str, process: str) -> Look:  # noqa: A002
    """Look at a job; unless it has ended, its end will be pushed to the process."""
    state, found, text = await call("wait_job", workflow, id, run, process)
    return Look(state.decode(), found.decode(), text.decode())


async def unwait_job(call: Caller, *, workflow: str, id: str, process: str) -> None:  # noqa: A002
    """A process waits for a job's end no longer."""
    await call("unwait_job", workflow, id, process)
