"""Every error that Lanner raises, and those that a run raises to steer its job.

All of them share one base class, ``LannerError``. This module imports nothing of Lanner.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

__all__ = [
    "ChildCancelledError",
    "ChildFailedError",
    "ClosedError",
    "ContinueAsNew",
    "DataModelError",
    "EmbeddedServerError",
    "EventTimeoutError",
    "InvalidArgumentError",
    "JobAlreadyExistsError",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
    "JobNotFoundError",
    "LannerError",
    "MapFailedError",
    "NonRetryableError",
    "RateLimited",
    "RedisUnavailableError",
    "ResultExpiredError",
    "RetryAfter",
    "RunningLoopError",
    "ScheduleNotFoundError",
    "SerializationError",
    "ServerVersionError",
    "SimulationError",
    "StepError",
    "StepFailedError",
    "UnsentJobsError",
    "WaitTimeoutError",
]


NAMED: Final = 5


class LannerError(Exception):
    """The base of every error of Lanner."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


_Error = TypeVar("_Error", bound=LannerError)


def _rebuild(kind: type[_Error], args: tuple[object, ...], state: dict[str, object]) -> _Error:
    """Make an error again as it was, for pickle and copy: its constructor may want something else than its text."""
    error = kind.__new__(kind)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class InvalidArgumentError(LannerError, ValueError):
    """An argument cannot be used; nothing was sent. The text names the argument and what would be right."""


class SerializationError(LannerError, ValueError):
    """A value cannot be written to, or read from, Redis. The text names where in the value, and what to do."""


class EmbeddedServerError(LannerError):
    """The embedded server cannot be found or started. The text says what to install or where its log is."""


class RedisUnavailableError(LannerError, ConnectionError):
    """Redis did not answer in time. Where a job may have been added all the same, the text names its id."""


class ServerVersionError(LannerError):
    """The server is older than what Lanner's scripts need (Redis 6.2, Valkey 7.2), or a build for 32 bits."""


class DataModelError(LannerError):
    """The namespace was written by a newer Lanner, whose data this version does not understand."""


class ClosedError(LannerError):
    """The worker or namespace has been closed and does nothing any more."""


class RunningLoopError(LannerError, RuntimeError):
    """A blocking call of ``lanner.sync`` was made in a thread whose event loop it would hold up."""


class JobError(LannerError):
    """Something about one job.

    Attributes:
        workflow: The id of the job's workflow.
        job_id: The job's id.
    """

    def __init__(self, message: str, *, workflow: str, job_id: str) -> None:
        super().__init__(message)
        self.workflow = workflow
        self.job_id = job_id


class JobFailedError(JobError):
    """The job has failed for good.

    Attributes:
        type: The name of the exception that ended it; ``JobExpiredError`` or ``StalledError`` where it was not started
            in time, or its workers were lost too often.
        message: That exception's text.
        traceback: The traceback where the job ran, as text; empty where none ran.
    """

    # `type` is the name the field uses for an exception's class name
    def __init__(self, *, workflow: str, job_id: str, type: str, message: str, traceback: str = "") -> None:
        text = f"job {job_id!r} of workflow {workflow!r} failed: {type}" + (f": {message}" if message else "")
        if traceback:
            text += f"\n\nwhere it ran:\n{traceback.rstrip()}"
        super().__init__(text, workflow=workflow, job_id=job_id)
        self.type = type
        self.message = message
        self.traceback = traceback

    @property
    def summary(self) -> str:
        """Its text without the traceback."""
        return str(self).partition("\n\nwhere it ran:\n")[0]


class JobCancelledError(JobError):
    """The job was cancelled.

    Attributes:
        reason: What the caller of ``cancel`` gave, or the empty string.
    """

    def __init__(self, *, workflow: str, job_id: str, reason: str = "") -> None:
        text = f"job {job_id!r} of workflow {workflow!r} was cancelled" + (f": {reason}" if reason else "")
        super().__init__(text, workflow=workflow, job_id=job_id)
        self.reason = reason


class ChildFailedError(JobFailedError):
    """A child of the run has failed for good. Not caught, it fails the run for good as well.

    Attributes:
        step: The path of the step that started the child; empty in a flow.
    """

    def __init__(
        self, *, workflow: str, job_id: str, type: str, message: str, traceback: str = "", step: str = ""
    ) -> None:
        super().__init__(workflow=workflow, job_id=job_id, type=type, message=message, traceback=traceback)
        self.step = step
        self.args = (_in_step(step, str(self)),)


class ChildCancelledError(JobCancelledError):
    """A child of the run was cancelled or removed. Not caught, it fails the run for good.

    Attributes:
        step: The path of the step that started the child; empty in a flow.
    """

    def __init__(self, *, workflow: str, job_id: str, reason: str = "", step: str = "") -> None:
        super().__init__(workflow=workflow, job_id=job_id, reason=reason)
        self.step = step
        self.args = (_in_step(step, str(self)),)


def _in_step(step: str, text: str) -> str:
    return f"step {step!r}: {text}" if step else text


class MapFailedError(LannerError):
    """Too few children of a ``map`` succeeded. Not caught, it fails the run for good.

    Attributes:
        step: The step's path.
        successes: How many succeeded.
        wanted: How many were asked for.
        failures: The failures of the others.
    """

    def __init__(self, *, step: str, successes: int, wanted: int, failures: Sequence[JobError]) -> None:
        first = f"; the first: {failures[0]}" if failures else ""
        super().__init__(f"step {step!r}: {successes} children succeeded, {wanted} were asked for{first}")
        self.step = step
        self.successes = successes
        self.wanted = wanted
        self.failures = list(failures)


class WaitTimeoutError(JobError, TimeoutError):
    """The job had not ended when the time given to ``wait`` was over. It goes on."""


class ResultExpiredError(JobError):
    """The job has ended, and its record has been dropped since (see ``result_ttl``)."""


class JobNotFoundError(JobError):
    """There is no job of this id."""


class ScheduleNotFoundError(LannerError):
    """There is no schedule of this id."""


class JobAlreadyExistsError(JobError):
    """A job of this id exists and may not be replaced."""


class StepError(LannerError):
    """A step was used in a way that could not be replayed: a name used twice, of another kind, or unfit."""


class EventTimeoutError(LannerError, TimeoutError):
    """No event came before the timeout that ``wait_for_event(..., on_timeout="raise")`` was given.

    Attributes:
        step: The path of the step that waited.
        event: The event's name.
    """

    def __init__(self, *, step: str, event: str) -> None:
        super().__init__(f"step {step!r}: no event {event!r} came before its timeout")
        self.step = step
        self.event = event


class UnsentJobsError(LannerError):
    """Not all runs of a ``Pending`` could be sent. Each is named by the id of its workflow and its own.

    Attributes:
        sent: Those that have been added.
        refused: Those that never will be, with the reasons: another job has the id, or their group could not be told.
        unsent: Those that Redis did not answer for. They stay collected, and sending them again adds none twice.
    """

    def __init__(
        self,
        *,
        sent: Sequence[tuple[str, str]],
        refused: Mapping[tuple[str, str], Exception],
        unsent: Sequence[tuple[str, str]],
        cause: Exception | None = None,
    ) -> None:
        parts = [f"{len(sent)} of {len(sent) + len(refused) + len(unsent)} jobs were sent ({_listed(sent)})"]
        if refused:
            first = next(iter(refused.values()))
            parts.append(f"{len(refused)} were refused ({_listed(list(refused))}), the first because {first}")
        if unsent:
            parts.append(f"{len(unsent)} were not sent ({_listed(unsent)}): {cause}; send them again")
        super().__init__("; ".join(parts))
        self.sent = list(sent)
        self.refused = dict(refused)
        self.unsent = list(unsent)


def _listed(jobs: Sequence[tuple[str, str]]) -> str:
    """Some of the jobs, and how many more there are."""
    shown = ", ".join(f"{workflow} {job_id!r}" for workflow, job_id in jobs[:NAMED])
    return (shown + (f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else "")) or "none"


class SimulationError(LannerError):
    """A simulated job cannot go on, or a planned crash was never reached. The text says what it waits for."""


class NonRetryableError(LannerError):
    """Raise it in a run or a step: the job fails at once, whatever attempts are left.

    Only the error that leaves the run counts, not what caused it.
    """


class StepFailedError(NonRetryableError):
    """A step failed for good in an earlier attempt; its failure is replayed and the step does not run again.

    Attributes:
        step: The step's path.
        type: The name of the exception that the step raised.
        message: That exception's text.
        traceback: The traceback where it was raised, as text.
    """

    def __init__(self, *, step: str, type: str, message: str, traceback: str = "") -> None:
        super().__init__(f"step {step!r} has failed for good: {type}: {message}")
        self.step = step
        self.type = type
        self.message = message
        self.traceback = traceback


# named after what the raiser asks for, as one reads it at the raise
class RetryAfter(LannerError):  # noqa: N818
    """Raise it in a run or a step: this attempt has failed, and the next begins after ``delay``.

    Attributes:
        delay: ``timedelta`` or seconds until the next attempt; it replaces the backoff.
    """

    def __init__(self, delay: timedelta | float, message: str = "") -> None:
        super().__init__(message or f"try again in {delay}")
        self.delay = delay


# named after what the raiser has run into, as one reads it at the raise
class RateLimited(LannerError):  # noqa: N818
    """Raise it in a run or a step that was told to slow down: the job goes back to its place, and no attempt is used.

    Attributes:
        delay: ``timedelta`` or seconds until it makes sense to try again.
        limiter: The name of one of the workflow's rate limiters, which is paused for everybody until then. None: only
            this job is put off.
    """

    def __init__(self, delay: timedelta | float, *, limiter: str | None = None, message: str = "") -> None:
        super().__init__(message or f"rate limited, try again in {delay}")
        self.delay = delay
        self.limiter = limiter


# a signal to the engine and no error: `except Exception` in a run must not stop it
class ContinueAsNew(BaseException):
    """Raise it in a run: the job goes on as a new run with another input, and without any checkpoints.

    For loops without end: what a run has to remember stays bounded. The job keeps its id, and who waits for it goes on
    waiting.

    Example:
        >>> raise ContinueAsNew(Poll(since=latest))
    """

    def __init__(self, input: object) -> None:
        super().__init__("the run goes on as a new one")
        self.input = input
