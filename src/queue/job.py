from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ..errors import (
    JobCancelledError,
    JobError,
    JobFailedError,
    JobNotFoundError,
    ResultExpiredError,
    WaitTimeoutError,
)
from . import keys
from .names import new_nonce
from .notes import log_line
from .options import Duration
from .outcome import Failure
from .scripts.controlling import cancel_job
from .scripts.descending import ChildEntry, Policy, list_children, set_policy
from .scripts.ending import NOT_THERE
from .scripts.recording import send_event
from .spec import Spec
from .validation import check_choice, check_free_id, check_text, duration_ms

if TYPE_CHECKING:
    from .queue import Queue
    from .scripts.ending import End
    from .watch import Happening, Watch

CHILDREN_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Record:
    """A job as it stands in Redis.

    Attributes:
        id: Its id.
        state: waiting, delayed, parked, active, completed, failed or cancelled.
        data: The payload.
        spec: What never changes in it.
        attempt: The attempt it is in, from 1.
        stalls: How often in a row its worker was lost without progress.
        failure: The last failure, also while it waits for the next attempt.
        progress: What its run last said of how far it is.
        result: Of a completed job.
        reason: Of a cancelled job.
        awaits: Of a job that sleeps: the names of the events that wake it.
        due: Of a delayed job: when it is to run, or to go on.
        created: When it was added.
        started: When the attempt it is in, or the last one, began; None before the first, and between two.
        finished: When it ended.
        steps: Its checkpoints by step path.
    """

    id: str
    state: str
    data: str
    spec: Spec
    attempt: int
    stalls: int
    failure: Failure | None
    progress: str | None
    result: str | None
    reason: str | None
    awaits: tuple[str, ...]
    due: datetime | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    steps: dict[str, str]


class Job:
    """The handle of a job: of one life of it where it came from adding it, else of whichever is there."""

    def __init__(self, queue: Queue, id: str, run: str) -> None:
        self.queue: Final = queue
        self.id: Final = id
        self.run: Final = run

    def __repr__(self) -> str:
        return f"<Job {self.id!r} of {self.queue.id!r}>"

    async def wait(self, timeout: Duration | None = None) -> str:  # noqa: ASYNC109 - a total, with an error of its own
        """Wait for the job's end and give its result. What has ended is given however short the timeout.

        Args:
            timeout: How long: ``timedelta`` or seconds. None: as long as it takes.

        Raises:
            JobFailedError: It failed for good.
            JobCancelledError: It was cancelled.
            WaitTimeoutError: It had not ended in time; it goes on.
            ResultExpiredError: It ended and its record is gone.
            JobNotFoundError: No job has the id.
            ClosedError: The namespace was closed meanwhile.
        """
        seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
        runtime = await self.queue.namespace.runtime()
        wait = runtime.waiters.wait(
            self.queue.id, self.id, self.run, within=seconds, first_look=self.queue.namespace.timeout
        )
        return self.result_of(await wait if seconds is None else await self.end_of(wait, seconds))

    async def end_of(self, wait: Awaitable[End], seconds: float | None) -> End:
        """The end that a wait of so many seconds (None: without an end of its own) gives.

        Raises:
            WaitTimeoutError: It took too long.
        """
        try:
            return await wait
        except TimeoutError:
            if seconds is None:
                raise
            raise self.late(seconds) from None

    def late(self, seconds: float) -> WaitTimeoutError:
        """The error of a wait of so many seconds that was too short."""
        return WaitTimeoutError(
            f"job {self.id!r} of workflow {self.queue.id!r} had not ended after {seconds:g} s; it goes on",
            workflow=self.queue.id,
            job_id=self.id,
        )

    def result_of(self, end: End) -> str:
        """The result of a job that has ended, or the error of how it ended."""
        if end.state == "completed":
            return end.text
        raise self.error_of(end)

    def error_of(self, end: End) -> JobError:
        """The error of how a job ended that has not completed."""
        if end.state == "failed":
            failure = Failure.loads(end.text).with_texts(self.queue.read_note)
            return JobFailedError(
                workflow=self.queue.id,
                job_id=self.id,
                type=failure.type,
                message=failure.message,
                traceback=failure.traceback,
            )
        if end.state == "cancelled":
            return JobCancelledError(workflow=self.queue.id, job_id=self.id, reason=self.queue.read_note(end.text))
        return self._gone(end.state)

    def _gone(self, state: str) -> JobError:
        what = f"job {self.id!r} of workflow {self.queue.id!r}"
        if state == "removed":
            return JobNotFoundError(f"{what} was removed", workflow=self.queue.id, job_id=self.id)
        if self.run:
            over = "its result_ttl is over, it was removed or never sent"
            why = "its id was used again" if state == "replaced" else over
            return ResultExpiredError(
                f"{what} has ended, and its record is gone ({why})",
                workflow=self.queue.id,
                job_id=self.id,
            )
        return JobNotFoundError(f"there is no {what}", workflow=self.queue.id, job_id=self.id)

    async def watch(self) -> AsyncGenerator[Happening]:
        """Everything that happens to the job, as it happens: started, progress, retrying, suspended, and its end.

        Of a job that has ended it gives the end. Leaving the loop ends the watch.

        Raises:
            JobNotFoundError: No job has the id.
            ResultExpiredError: The job's record is gone.
            ClosedError: The namespace was closed meanwhile.

        Example:
            >>> async for happening in job.watch():
            ...     print(happening.kind, happening.text)
        """
        runtime = await self.queue.namespace.runtime()
        with runtime.waiters.watch(self.queue.id, self.id, self.run) as watch:
            await watch.look()
            async for happening in self.happenings_of(watch):
                yield happening

    async def happenings_of(self, watch: Watch) -> AsyncGenerator[Happening]:
        """What an open watch hears, to the end of the job; one that is gone raises."""
        async for happening in watch.happenings():
            if happening.kind in NOT_THERE:
                raise self._gone(happening.kind)
            yield happening

    async def log(self) -> list[str]:
        """The lines that its runs have written, the latest thousand."""
        entries: list[bytes] = await self.queue.namespace.persist(
            lambda runtime: runtime.call.link.call(
                "LRANGE", keys.log(runtime.call.base, self.queue.id, self.id), 0, -1
            ),
            f"reading the log of job {self.id!r}",
        )
        return [self.queue.read_note(log_line(entry.decode())) for entry in entries]

    async def cancel(self, reason: str = "") -> bool:
        """Cancel the job wherever it is. Whether it is or will end cancelled; False: it ended otherwise or is gone."""
        check_text(reason, "reason")
        nonce = new_nonce()
        answer = await self.queue.namespace.persist(
            lambda runtime: cancel_job(
                runtime.call, workflow=self.queue.id, id=self.id, run=self.run, reason=reason, nonce=nonce
            ),
            f"cancelling job {self.id!r}",
        )
        await self.queue.namespace.end_descendants(f"Job {self.id!r} is cancelled")
        return answer == 1

    async def children(self) -> AsyncGenerator[ChildEntry]:
        """The job's children, 200 a call: those of its run, or of its flow."""
        skip = 0
        while True:
            page = await self._children(skip)
            for child in page:
                yield child
            skip += len(page)
            if len(page) < CHILDREN_AT_ONCE:
                return

    async def _children(self, skip: int) -> list[ChildEntry]:
        return await self.queue.namespace.persist(
            lambda runtime: list_children(
                runtime.call, workflow=self.queue.id, id=self.id, skip=skip, limit=CHILDREN_AT_ONCE
            ),
            f"listing the children of job {self.id!r}",
        )

    async def set_failure_policy(self, policy: Policy) -> bool:
        """Change what the job's failure means to its parent: ``fail`` or ``continue``. False: it is no child of a flow.

        Raises:
            JobNotFoundError: No job has the id.
        """
        check_choice(policy, "policy", ("fail", "continue"))
        answer = await self.queue.namespace.persist(
            lambda runtime: set_policy(runtime.call, workflow=self.queue.id, id=self.id, policy=policy),
            f"setting the policy of job {self.id!r}",
        )
        if answer < 0:
            raise self._gone("missing")
        return answer == 1

    async def send_event(self, name: str, text: str, *, event_id: str) -> bool:
        """Send an event to the job; one sent again with the same ``event_id`` counts once. False: the job has ended.

        Raises:
            JobNotFoundError: No job has the id.
        """
        check_free_id(name, "event name")
        check_free_id(event_id, "event_id")
        check_text(text, "event text")
        answer = await self.queue.namespace.persist(
            lambda runtime: send_event(
                runtime.call, workflow=self.queue.id, id=self.id, name=name, sender=event_id, text=text
            ),
            f"sending event {name!r} to job {self.id!r}",
        )
        if answer < 0:
            raise self._gone("missing")
        return answer == 1

    async def record(self) -> Record:
        """The job as it stands now.

        Raises:
            JobNotFoundError: No job has the id (or, for a handle that came from adding it, another life has).
            ResultExpiredError: Its record is gone.
        """
        claim, fields = await self._claim_and_record()
        if not fields:
            raise self._gone("missing")
        state, started, finished = fields.get("state"), fields.get("started"), fields.get("finished")
        if state is None:
            # as stateOf has it: the record of a job whose first attempt runs leaves that to its claim
            state, started = ("active", claim[1]) if claim else ("waiting", started)
        elif " " in state:
            state, finished, started = state.split()
        spec = msgspec.json.decode(fields["spec"], type=Spec)
        if self.run not in ("", spec.run):
            raise self._gone("replaced")
        note = self.queue.read_note
        return Record(
            id=self.id,
            state=state,
            data=fields["data"],
            spec=spec,
            attempt=int(fields.get("failures", 0)) + 1,
            stalls=int(fields.get("stalls", 0)),
            failure=Failure.loads(fields["failure"]).with_texts(note) if "failure" in fields else None,
            progress=fields.get("progress"),
            result=fields.get("result"),
            reason=note(fields["reason"]) if "reason" in fields else None,
            # behind a tab stands what it waits for otherwise: children, and what is done before it may run
            awaits=tuple(name for name in fields.get("awaits", "").split("\n") if name and name[0] != "\t"),
            due=await self._due() if state == "delayed" else None,
            created=_instant(spec.created),
            started=_instant(int(started)) if started else None,
            finished=_instant(int(finished)) if finished else None,
            steps=await self._hash(keys.steps),
        )

    async def state(self) -> str:
        """The job's state: see ``Record``."""
        return (await self.record()).state

    async def _claim_and_record(self) -> tuple[list[str], dict[str, str]]:
        """Token and instant of its claim (none: it has no claim), and the fields of its record (none: it is gone).

        Where the record leaves it to the claim whether the job is active, both are of one moment.
        """
        # the claim first: a job that ends between the two is not taken for one that waits
        claim = await self._claim()
        while True:
            fields = await self._hash(keys.job)
            if not claim or "state" in fields:
                return claim, fields
            # it stood all the while, or that of another round or life was read
            if (now := await self._claim()) == claim:
                return claim, fields
            claim = now

    async def _due(self) -> datetime | None:
        due: bytes | None = await self.queue.namespace.persist(
            lambda runtime: runtime.call.link.call("ZSCORE", keys.delayed(runtime.call.base, self.queue.id), self.id),
            f"reading job {self.id!r}",
        )
        # it may have become due since
        return _instant(int(float(due))) if due else None

    async def _claim(self) -> list[str]:
        claim: bytes | None = await self.queue.namespace.persist(
            lambda runtime: runtime.call.link.call("HGET", keys.active(runtime.call.base, self.queue.id), self.id),
            f"reading job {self.id!r}",
        )
        return claim[1:].decode().split()[:2] if claim else []

    async def _hash(self, key: Callable[[str, str, str], str]) -> dict[str, str]:
        return await self.queue.namespace.persist(
            lambda runtime: runtime.call.read_hash(key(runtime.call.base, self.queue.id, self.id)),
            f"reading job {self.id!r}",
        )


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
