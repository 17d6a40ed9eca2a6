"""What a queue does with schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from ..errors import InvalidArgumentError, ScheduleNotFoundError
from . import keys
from .cadence import Cadence
from .calling import pairs_of
from .names import new_nonce
from .options import JobOptions
from .schedules import Schedule, fire_name, read_schedule, timing_of
from .scripts.scheduling import Overlap, pause_schedule, remove_schedule, set_schedule
from .validation import check_choice, check_free_id

if TYPE_CHECKING:
    from .job import Job
    from .queue import Queue

MOST_LISTED: Final = 10_000


class Schedules:
    """The schedules of a queue: ``queue.schedules``."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._namespace = queue.namespace

    async def upsert(
        self,
        schedule_id: str,
        cadence: Cadence,
        data: str,
        *,
        overlap: Overlap = "skip",
        group: str | None = None,
        **options: Unpack[JobOptions],
    ) -> bool:
        """Create a schedule, or change it. Unchanged timing keeps the instant it is armed for.

        Args:
            schedule_id: Its id, 1 to 256 characters.
            cadence: When it fires; made by ``cadence``.
            data: The payload of its jobs.
            overlap: What becomes of a fire while the job of the previous one lives: ``"skip"`` it, ``"allow"`` both, or
                ``"cancel"`` the previous one.
            group: The group of its jobs. Default: one of the schedule's own; none where overlap is allowed.
            **options: Of its jobs; see ``JobOptions``.

        Returns:
            Whether it was created.

        Raises:
            InvalidArgumentError: An argument cannot be used; nothing was sent.

        Example:
            >>> await queue.schedules.upsert("nightly", cadence("0 3 * * *", tz="Europe/Berlin"), "all of it")
        """
        from .queue import Added  # noqa: PLC0415 - queues build on this module

        check_free_id(schedule_id, "schedule id")
        check_choice(overlap, "overlap", ("skip", "allow", "cancel"))
        if not isinstance(cadence, Cadence):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a checker
            raise InvalidArgumentError(f"cadence must be made by cadence(pattern) or cadence(every=), not {cadence!r}")
        if group is None and overlap != "allow":
            group = f"schedule:{schedule_id}"[:256]
        new = self._queue.prepare(data, Added(group=group), options)
        armed = cadence.next_after(await self._now())
        due = None if armed is None else cadence.fire_ms(armed, self._name(schedule_id))
        return await self._namespace.persist(
            lambda runtime: set_schedule(
                runtime.call,
                workflow=self._queue.id,
                schedule=schedule_id,
                timing=timing_of(cadence),
                cadence=cadence.dumps(),
                data=data,
                spec=new.spec,
                overlap=overlap,
                armed=armed,
                due=due,
            ),
            f"setting schedule {schedule_id!r}",
        )

    async def remove(self, schedule_id: str) -> bool:
        """Remove a schedule; jobs that it has added stay. Whether there was one."""
        check_free_id(schedule_id, "schedule id")
        nonce = new_nonce()
        return await self._namespace.persist(
            lambda runtime: remove_schedule(runtime.call, workflow=self._queue.id, schedule=schedule_id, nonce=nonce),
            f"removing schedule {schedule_id!r}",
        )

    async def pause(self, schedule_id: str) -> bool:
        """Fire a schedule no more until ``resume``. Whether there is one."""
        return await self._set_paused(schedule_id, paused=True, armed=None, due=None)

    async def resume(self, schedule_id: str) -> bool:
        """Have a paused schedule go on with its next instant; what it missed stays missed. Whether there is one."""
        schedule = await self.get(schedule_id)
        if schedule is None:
            return False
        armed = schedule.cadence.next_after(await self._now())
        due = None if armed is None else schedule.cadence.fire_ms(armed, self._name(schedule_id))
        return await self._set_paused(schedule_id, paused=False, armed=armed, due=due)

    async def trigger(self, schedule_id: str, *, trace: str = "") -> Job:
        """Add a job of a schedule now; its cadence is unchanged. It carries ``trace``, the caller's trace context.

        Raises:
            ScheduleNotFoundError: There is no such schedule.
        """
        fields = await self._fields(schedule_id)
        if not fields:
            raise ScheduleNotFoundError(f"there is no schedule {schedule_id!r} of workflow {self._queue.id!r}")
        return await self._queue.add_like(fields["spec"], fields["data"], trace)

    async def get(self, schedule_id: str) -> Schedule | None:
        """A schedule, or None."""
        fields = await self._fields(schedule_id)
        due: bytes | None = await self._read("ZSCORE", keys.due(self._namespace.base, self._queue.id), schedule_id)
        return read_schedule(schedule_id, fields, None if due is None else float(due)) if fields else None

    async def list(self) -> list[Schedule]:
        """All schedules, the one that fires next first."""
        ids: list[bytes] = await self._read(
            "ZRANGE", keys.due(self._namespace.base, self._queue.id), 0, MOST_LISTED - 1
        )
        found = [await self.get(schedule_id.decode()) for schedule_id in ids]
        return [schedule for schedule in found if schedule is not None]

    async def _set_paused(self, schedule_id: str, *, paused: bool, armed: int | None, due: int | None) -> bool:
        check_free_id(schedule_id, "schedule id")
        return await self._namespace.persist(
            lambda runtime: pause_schedule(
                runtime.call, workflow=self._queue.id, schedule=schedule_id, paused=paused, armed=armed, due=due
            ),
            f"pausing or resuming schedule {schedule_id!r}",
        )

    async def _fields(self, schedule_id: str) -> dict[str, str]:
        check_free_id(schedule_id, "schedule id")
        flat: list[bytes] = await self._read(
            "HGETALL", keys.schedule(self._namespace.base, self._queue.id, schedule_id)
        )
        return pairs_of(flat)

    async def _read(self, *command: str | int) -> Any:
        return await self._namespace.persist(lambda runtime: runtime.call.link.call(*command), "reading schedules")

    async def _now(self) -> int:
        seconds, micros = await self._read("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def _name(self, schedule_id: str) -> str:
        return fire_name(self._namespace.base, self._queue.id, schedule_id)
