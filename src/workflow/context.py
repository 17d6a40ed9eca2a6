from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, ParamSpec, Protocol

from typing_extensions import TypeVar

from ..queue.spec import Spec
from .children import flow_results
from .engine import Engine
from .program import Program
from .step import Steps
from .sync import SyncSteps
from .telemetry import ObservedAttempt, RunSpan

P = ParamSpec("P")
InputT_co = TypeVar("InputT_co", covariant=True)
ProgressT_contra = TypeVar("ProgressT_contra", contravariant=True, default=Any)


class Attempted(Protocol):
    """The run that a context belongs to."""

    program: Program
    job_id: str
    spec: Spec
    failures: int
    observed: ObservedAttempt | None

    @property
    def engine(self) -> Engine:
        """What its steps share."""
        ...


class _Context(Generic[InputT_co, ProgressT_contra]):
    __slots__ = ("_children", "_run", "_step", "input")

    _children: list[Any] | None
    _run: Attempted
    input: InputT_co

    @property
    def workflow(self) -> str:
        """The id of the workflow."""
        return self._run.program.workflow

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self._run.job_id

    @property
    def group(self) -> str:
        """The job's group; empty when it has none."""
        return self._run.spec.group

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1. Waits and recoveries do not count."""
        return self._run.failures + 1

    @property
    def scheduled(self) -> datetime | None:
        """The instant of a schedule that the job stands for, in UTC; None for any other job."""
        instant = self._run.spec.scheduled
        return datetime.fromtimestamp(instant / 1000, UTC) if instant else None

    @property
    def children(self) -> list[Any]:
        """In a flow, the results of the job's children in their order.

        For one that failed or was cancelled a ``ChildFailedError`` or ``ChildCancelledError``.
        """
        if self._children is None:
            self._children = flow_results(self._run.engine, self.workflow)
        return self._children

    @property
    def span(self) -> RunSpan:
        """The tracing span of this attempt, to set attributes on; without tracing they go nowhere.

        Example:
            >>> ctx.span.set_attribute("order.total", 99.5)
        """
        return RunSpan(self._run.observed)

    def on_failure(self, name: str, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Register a compensation: what is to be undone when the job fails for good or is cancelled.

        Then they run in the reverse of the order in which they were registered, each once: one that has finished does
        not run again after a crash. One that raises is tried again, as often as the job may be attempted and three
        times at least. Register it before the step that it undoes, and let it cope with that step not having happened.

        When the job is cancelled, so are the children that it has started, and they have ended before anything is
        undone. A job whose compensations have run starts from the beginning when it is retried. One that is removed
        undoes nothing.

        Args:
            name: Its name, of its own in its scope among the compensations of the job.
            fn: Its function, async or plain (a plain one runs in a thread).
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Raises:
            StepError: The name is unfit, or taken; or it is registered inside a step.

        Example:
            >>> ctx.on_failure("refund", refund, ctx.input.order_id)
            >>> await ctx.step.do("charge", charge, ctx.input.order_id)
        """
        self._run.engine.register_undo(name, fn, args, kwargs)


class Context(_Context[InputT_co, ProgressT_contra]):
    """What an ``async def`` workflow is given: ``Context[Input]``, or ``Context[Input, Progress]``.

    Attributes:
        input: The job's input.

    Example:
        >>> async def onboard(ctx: Context[Signup]) -> None:
        ...     await ctx.step.do("send welcome", send_welcome, ctx.input.email)
    """

    __slots__ = ()

    _step: Steps | None

    def __init__(self, value: InputT_co, run: Attempted) -> None:
        self._run, self.input = run, value
        self._children = self._step = None

    @property
    def step(self) -> Steps:
        """The durable steps of the run."""
        if self._step is None:
            self._step = Steps(self._run.engine)
        return self._step

    async def progress(self, value: ProgressT_contra) -> None:
        """Say how far the job has come: to those who watch it, and in its record. The last value counts.

        Raises:
            InvalidArgumentError: The value is too long: up to 65,536 characters of text.
            SerializationError: The value cannot be written, or is not of the workflow's progress type.

        Example:
            >>> await ctx.progress({"done": 3, "of": 10})
        """
        await self._run.engine.progress(value)

    async def log(self, line: str) -> None:
        """Write a line to the job's log, which keeps the latest thousand, of up to 4,000 characters each.

        Example:
            >>> await ctx.log("the card was declined, asking for another")
        """
        await self._run.engine.log(line)


class SyncContext(_Context[InputT_co, ProgressT_contra]):
    """What a plain ``def`` workflow is given, which runs in a thread of its own. Its types are those of ``Context``.

    Attributes:
        input: The job's input.

    Example:
        >>> def onboard(ctx: SyncContext[Signup]) -> None:
        ...     ctx.step.do("send welcome", send_welcome, ctx.input.email)
    """

    __slots__ = ()

    _step: SyncSteps | None

    def __init__(self, value: InputT_co, run: Attempted) -> None:
        self._run, self.input = run, value
        self._children = self._step = None

    @property
    def step(self) -> SyncSteps:
        """The durable steps of the run. Their calls block."""
        if self._step is None:
            self._step = SyncSteps(self._run.engine)
        return self._step

    def progress(self, value: ProgressT_contra) -> None:
        """Say how far the job has come. See ``Context.progress``.

        Example:
            >>> ctx.progress(0.5)
        """
        self._run.engine.from_thread(self._run.engine.progress(value))

    def log(self, line: str) -> None:
        """Write a line to the job's log. See ``Context.log``.

        Example:
            >>> ctx.log("the card was declined")
        """
        self._run.engine.from_thread(self._run.engine.log(line))

    def check_cancelled(self) -> None:
        """End the run here if it was cancelled, timed out, lost, or is to be handed back.

        A thread cannot be interrupted: call it in a loop that takes long.

        Example:
            >>> for page in pages:
            ...     ctx.check_cancelled()
            ...     convert(page)
        """
        self._run.engine.check_thread()
