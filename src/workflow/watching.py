"""What is heard of a job that is watched."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeAliasType, TypeVar

from ..errors import JobCancelledError, JobFailedError
from ..queue.outcome import Failure
from ..queue.scripts.ending import End

if TYPE_CHECKING:
    from ..queue.job import Job
    from ..queue.watch import Happening
    from .workflow import Workflow

__all__ = [
    "JobCancelled",
    "JobCompleted",
    "JobEvent",
    "JobFailed",
    "JobProgress",
    "JobRetrying",
    "JobStarted",
    "JobSuspended",
]

OutputT = TypeVar("OutputT")
OutputT_co = TypeVar("OutputT_co", covariant=True)
ProgressT = TypeVar("ProgressT", default=Any)
ProgressT_co = TypeVar("ProgressT_co", covariant=True, default=Any)


@dataclass(frozen=True, slots=True)
class JobStarted:
    """An attempt has begun; ``value`` says which, from 1."""

    kind: Literal["started"] = field(default="started", init=False)
    job_id: str
    value: int


@dataclass(frozen=True, slots=True)
class JobProgress(Generic[ProgressT_co]):
    """The run has said how far it is, with ``ctx.progress``; ``value`` is of the workflow's progress type."""

    kind: Literal["progress"] = field(default="progress", init=False)
    job_id: str
    value: ProgressT_co


@dataclass(frozen=True, slots=True)
class JobRetrying:
    """An attempt has failed and another will follow; ``value`` is the failure."""

    kind: Literal["retrying"] = field(default="retrying", init=False)
    job_id: str
    value: Failure


@dataclass(frozen=True, slots=True)
class JobSuspended:
    """The job sleeps; ``value`` is the instant at which it goes on, None if it waits for events or children alone."""

    kind: Literal["suspended"] = field(default="suspended", init=False)
    job_id: str
    value: datetime | None


@dataclass(frozen=True, slots=True)
class JobCompleted(Generic[OutputT_co]):
    """The job has ended well; ``value`` is its output."""

    kind: Literal["completed"] = field(default="completed", init=False)
    job_id: str
    value: OutputT_co


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job has failed for good; ``value`` is the error that ``Job.wait`` raises then."""

    kind: Literal["failed"] = field(default="failed", init=False)
    job_id: str
    value: JobFailedError


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """The job was cancelled; ``value`` is the reason that was given, or the empty string."""

    kind: Literal["cancelled"] = field(default="cancelled", init=False)
    job_id: str
    value: str


# not a plain union: Python 3.13.0 cannot fill in the default of a parameter of one
JobEvent = TypeAliasType(
    "JobEvent",
    JobCompleted[OutputT] | JobProgress[ProgressT] | JobStarted | JobRetrying | JobSuspended | JobFailed | JobCancelled,
    type_params=(OutputT, ProgressT),
)


async def events_of(
    workflow: Workflow[Any, OutputT, ProgressT], happenings: AsyncGenerator[tuple[Job, Happening]]
) -> AsyncGenerator[JobEvent[OutputT, ProgressT]]:
    """What happens to a workflow's job, with values instead of texts.

    Raises:
        JobNotFoundError: The job was removed.
        SerializationError: A value is not of its type.
    """
    async with aclosing(happenings):
        async for job, happening in happenings:
            yield _event_of(workflow, job, happening)


def _event_of(
    workflow: Workflow[Any, OutputT, ProgressT], job: Job, happening: Happening
) -> JobEvent[OutputT, ProgressT]:
    text = happening.text
    match happening.kind:
        case "started":
            return JobStarted(job.id, int(text) + 1)
        case "progress":
            return JobProgress(job.id, workflow.payloads.read_progress(text))
        case "retrying":
            return JobRetrying(job.id, Failure.loads(text).with_texts(workflow.notes.read))
        case "suspended":
            return JobSuspended(job.id, datetime.fromtimestamp(int(text) / 1000, UTC) if text else None)
        case ended:
            return _end_of(workflow, job, End(ended, job.run, text))


def _end_of(workflow: Workflow[Any, OutputT], job: Job, end: End) -> JobEvent[OutputT]:
    try:
        result = job.result_of(end)
    except JobFailedError as error:
        return JobFailed(job.id, error)
    except JobCancelledError as error:
        return JobCancelled(job.id, error.reason)
    return JobCompleted(job.id, workflow.payloads.read_output(result))
