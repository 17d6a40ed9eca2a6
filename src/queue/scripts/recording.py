from collections.abc import Sequence
from dataclasses import dataclass

from ..calling import Caller
from ..wire import Argument


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A step's record on its way to Redis."""

    workflow: str
    id: str
    token: str
    path: str
    text: str


async def record_steps(call: Caller, *, steps: Sequence[Checkpoint]) -> list[bool]:
    """Store checkpoints. For each whether it was; False: its claim is lost."""
    arguments: list[Argument] = []
    for step in steps:
        arguments += (step.workflow, step.id, step.token, step.path, step.text)
    answer: bytes = await call("record_steps", *arguments)
    return [status == 49 for status in answer]  # noqa: PLR2004 - "1"


async def report_progress(call: Caller, *, workflow: str, id: str, token: str, text: str) -> bool:
    """Say how far a job has come. False: the claim is lost."""
    return bool(await call("report_progress", workflow, id, token, text))


async def append_log(call: Caller, *, workflow: str, id: str, token: str, entry: str, most: int) -> bool:
    """Write an entry, which no other is equal to, to a job's log of at most so many. False: the claim is lost."""
    return bool(await call("append_log", workflow, id, token, entry, most))


async def send_event(call: Caller, *, workflow: str, id: str, name: str, sender: str, text: str) -> int:
    """Send an event to a job. 1 kept, 0 the job has ended, -1 there is none."""
    answer: int = await call("send_event", workflow, id, name, sender, text)
    return answer


async def take_event(
    call: Caller,
    *,
    workflow: str,
    id: str,
    token: str,
    name: str,
    path: str,
    before: str,
    otherwise: str,
) -> str | bool | None:
    """Take the oldest event of a name as a step's checkpoint, or write ``otherwise`` there.

    Its text; None: none was there; False: the claim is lost.
    """
    answer: bytes | int | None = await call("take_event", workflow, id, token, name, path, before, otherwise)
    if isinstance(answer, bytes):
        return answer.decode()
    return None if answer is None else False
