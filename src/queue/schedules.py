"""Schedules: jobs that are added by the clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ..errors import InvalidArgumentError
from .cadence import Cadence
from .duty import Duty
from .names import new_id, new_nonce
from .scripts.scheduling import DueSchedule, due_schedules, fire_schedule
from .spec import Spec

if TYPE_CHECKING:
    from .calling import Caller

logger: Final = logging.getLogger(__name__)
FIRED_AT_ONCE: Final = 20
JOBS_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands in Redis.

    Attributes:
        id: Its id.
        cadence: Its timing.
        data: The payload of its jobs.
        overlap: What happens to a fire while the job of the last one lives: skip, allow, or cancel that job.
        paused: Whether it is paused.
        next_fire: When it fires next; None when it is paused or will not fire any more.
        last_fire: When it last fired.
        last_job: The id of the job of its last fire.
        fires: How often it fired.
        skipped: How many of these fires were skipped because the previous job lived.
    """

    id: str
    cadence: Cadence
    data: str
    overlap: str
    paused: bool
    next_fire: datetime | None
    last_fire: datetime | None
    last_job: str | None
    fires: int
    skipped: int


def read_schedule(schedule_id: str, fields: dict[str, str], due: float | None) -> Schedule:
    """A schedule from its hash and its score among those that are due."""
    finite = due is not None and due != float("inf")
    return Schedule(
        id=schedule_id,
        cadence=Cadence.loads(fields["cadence"]),
        data=fields["data"],
        overlap=fields["overlap"],
        paused="paused" in fields,
        next_fire=_instant(due) if finite and due is not None else None,
        last_fire=_instant(int(fields["last_fire"])) if "last_fire" in fields else None,
        last_job=fields.get("last_job"),
        fires=int(fields.get("fires", 0)),
        skipped=int(fields.get("skipped", 0)),
    )


def timing_of(cadence: Cadence) -> str:
    """What must be the same for a schedule to keep the instant it is armed for."""
    return msgspec.structs.replace(cadence, catch_up="one", catch_up_limit=Cadence().catch_up_limit).dumps()


def fire_name(base: str, workflow: str, schedule_id: str) -> str:
    """What a schedule's jitter is derived from."""
    return f"{base}:{workflow}:{schedule_id}"


class Fired:
    """A fire that is watched. This one is by nobody.

    Attributes:
        trace: The trace context that its jobs carry.
    """

    trace: str = ""

    def fired(self, job_ids: list[str]) -> None:
        """It has added jobs."""


def unwatched(_workflow: str, _schedule: str) -> Fired:
    """Watch no fire."""
    return Fired()


class FireSchedules(Duty):
    """Add the jobs of schedules that are due. Any number of workers may; each fire happens once."""

    jitter = 0.0

    def __init__(
        self,
        call: Caller,
        workflows: Sequence[str],
        safety: float,
        report: Callable[[BaseException], None],
        fires: Callable[[str, str], Fired],
    ) -> None:
        """Fire those of some workflows.

        ``report`` is called with what is wrong with one that cannot be fired, ``fires`` (with workflow and schedule)
        before each fire.
        """
        super().__init__()
        self._report = report
        self._fires = fires
        self._call = call
        self._workflows = list(workflows)
        self._safety = safety
        self._unfit: set[tuple[str, str, str]] = set()

    async def once(self) -> float:
        """Fire what is due."""
        # those that cannot be fired here stay due for a worker that can: they must not crowd out others
        limit = FIRED_AT_ONCE + len(self._unfit)
        now, again_ms, due = await due_schedules(self._call, limit=limit, workflows=self._workflows)
        unfit: set[tuple[str, str, str]] = set()
        for schedule in due:
            try:
                await self._fire(schedule, now)
            except (InvalidArgumentError, msgspec.MsgspecError) as error:
                found = (schedule.workflow, schedule.id, schedule.due)
                unfit.add(found)
                if found not in self._unfit:
                    logger.error(  # noqa: TRY400 - the text says what is wrong with the schedule
                        "schedule %r of workflow %r cannot be fired here: %s", schedule.id, schedule.workflow, error
                    )
                    self._report(error)
        self._unfit = unfit
        if len(due) > len(unfit):
            return 0.0
        # a timer's instant is rounded down to a millisecond by Redis' clock: never look too early
        return min(self._safety, (again_ms + 1) / 1000) if again_ms else self._safety

    async def _fire(self, schedule: DueSchedule, now: int) -> None:
        cadence = Cadence.loads(schedule.cadence)
        name = fire_name(self._call.base, schedule.workflow, schedule.id)
        fires, armed = cadence.due(schedule.armed, now, name)
        spec = msgspec.json.decode(schedule.spec, type=Spec)
        watched = self._fires(schedule.workflow, schedule.id)
        jobs = [(new_id(), _spec_of(spec, instant, watched.trace), schedule.data) for instant in fires[-JOBS_AT_ONCE:]]
        added = await fire_schedule(
            self._call,
            workflow=schedule.workflow,
            schedule=schedule.id,
            found=schedule.due,
            armed=armed,
            due=None if armed is None else cadence.fire_ms(armed, name),
            fired=fires[-1] if fires else 0,
            overlap=schedule.overlap,
            jobs=jobs,
        )
        if added > 0:
            watched.fired([job_id for job_id, _, _ in jobs])


def _spec_of(spec: Spec, instant: int, trace: str) -> str:
    """The spec of the job of one instant."""
    new = msgspec.structs.replace(spec, run=new_nonce(), scheduled=instant, trace=trace)
    return msgspec.json.encode(new).decode()


def _instant(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
