from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..calling import Caller
from ..wire import Argument

Overlap = Literal["skip", "allow", "cancel"]


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule that is due, as it was found."""

    workflow: str
    id: str
    due: str
    armed: int
    cadence: str
    data: str
    spec: str
    overlap: str


async def set_schedule(
    call: Caller,
    *,
    workflow: str,
    schedule: str,
    timing: str,
    cadence: str,
    data: str,
    spec: str,
    overlap: Overlap,
    armed: int | None,
    due: int | None,
) -> bool:
    """Create or change a schedule. Whether it was created."""
    when: list[Argument] = ["" if armed is None else armed, "" if due is None else due]
    return bool(await call("set_schedule", workflow, schedule, timing, cadence, data, spec, overlap, *when))


async def due_schedules(
    call: Caller, *, limit: int, workflows: Sequence[str]
) -> tuple[int, int | None, list[DueSchedule]]:
    """Redis' now, ms until the next is due (0 at once, None nothing in sight), and those that are due."""
    now, again, found = await call("due_schedules", limit, *workflows)
    due: list[DueSchedule] = []
    for fields in found:
        workflow, schedule, score, armed, cadence, data, spec, overlap = (field.decode() for field in fields)
        due.append(DueSchedule(workflow, schedule, score, int(armed), cadence, data, spec, overlap))
    return now, None if again < 0 else again, due


async def fire_schedule(
    call: Caller,
    *,
    workflow: str,
    schedule: str,
    found: str,
    armed: int | None,
    due: int | None,
    fired: int,
    overlap: str,
    jobs: Sequence[tuple[str, str, str]],
) -> int:
    """Fire a schedule with jobs (id, spec, data), if it still is as it was found. Jobs added; -1: it is not."""
    arguments: list[Argument] = ["" if armed is None else armed, "" if due is None else due, fired, overlap]
    for each in jobs:
        arguments += each
    answer: int = await call("fire_schedule", workflow, schedule, found, *arguments)
    return answer


async def remove_schedule(call: Caller, *, workflow: str, schedule: str, nonce: str = "") -> bool:
    """Remove a schedule. Whether there was one."""
    return bool(await call("remove_schedule", workflow, schedule, nonce))


async def pause_schedule(
    call: Caller, *, workflow: str, schedule: str, paused: bool, armed: int | None, due: int | None
) -> bool:
    """Pause a schedule, or have it go on from an instant. Whether there is one."""
    return bool(
        await call(
            "pause_schedule",
            workflow,
            schedule,
            int(paused),
            "" if armed is None else armed,
            "" if due is None else due,
        )
    )
