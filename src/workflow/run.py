import asyncio
import contextvars
import inspect
import logging
import threading
from typing import Any, Final, Protocol

import msgspec

from ..errors import ContinueAsNew
from ..queue.claim import EndReason
from ..queue.deciding import decide
from ..queue.outcome import Cancelled, Completed, Continued, Failed, Limited, Outcome, Released, Retry, Suspended
from ..queue.spec import Spec
from .calls import TURNS, Calls
from .codec import Notes
from .compensation import Ending, compensate
from .context import Context, SyncContext
from .engine import Engine
from .journal import Journal, Kind
from .program import Program
from .telemetry import ObservedAttempt
from .threads import Work
from .values import Values

LAST_CALL: Final = 1.0
_making_engine: Final = threading.Lock()

logger = logging.getLogger(__name__)


class Finisher(Protocol):
    """What a run is for."""

    def finish(self, outcome: Outcome) -> None:
        """The run is over."""
        ...


class Run(msgspec.Struct, eq=False):
    """One attempt at a job: it drives the workflow's function and tells what that ended in.

    Everything but the function of a plain workflow happens in the event loop that the run was made in.

    Attributes:
        program: What it runs.
        input: The job's input.
        job_id: The job's id.
        spec: The job's options.
        failures: Attempts that have failed before this one.
        journal: Where its checkpoints are.
        loop: The event loop that it runs in.
        observed: What the attempt tells of itself, where anybody wants to know.
        finisher: Whose ``finish`` is called with the outcome as soon as nothing of the run goes on.
        ended: Why the worker, or a refused write, ended the run; None while neither did. After ``LOST`` the outcome
            is of no use: the job is somebody else's.
        error: What the attempt has failed with; None when it has not, or with what was undone after it.
    """

    program: Program
    input: Any
    job_id: str
    spec: Spec
    failures: int
    journal: Journal
    loop: asyncio.AbstractEventLoop
    observed: ObservedAttempt | None = None
    finisher: Finisher | None = None
    ended: EndReason | None = None
    error: BaseException | None = None
    _engine: Engine | None = None
    _task: asyncio.Task[None] | None = None
    _work: Work | None = None
    _future: asyncio.Future[Outcome] | None = None
    _outcome: Outcome | None = None
    _forced: Outcome | None = None
    _ending: dict[asyncio.Task[Any], int] = {}
    _main_done: bool = True
    _over: bool = False
    _timer: asyncio.TimerHandle | None = None
    _undoing: asyncio.Task[None] | None = None
    _replaying: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        if self.journal.recorded:
            self._make_engine()

    @property
    def engine(self) -> Engine:
        """What its steps share.

        It is made when it is first asked for, which a first attempt without steps never does. What earlier attempts
        have left is known before the function runs.
        """
        engine = self._engine
        if engine is None:
            # a thread that was given the context may ask, too
            with _making_engine:
                engine = self._make_engine()
        return engine

    def _make_engine(self) -> Engine:
        if self._engine is not None:
            return self._engine
        recorded, program = dict(self.journal.recorded), self.program
        engine = Engine(
            program,
            self.spec,
            self.failures,
            Calls(self, recorded, self.loop, program.quiet),
            self.journal,
            Values(program.serializer, program.workflow, self.job_id, program.notes),
            self.loop,
            self.observed,
        )
        if recorded:
            engine.recall()
        self._engine = engine
        if self._over:
            engine.calls.close()
        return engine

    @property
    def notes(self) -> Notes:
        """How texts are written that people read."""
        return self.program.notes

    @property
    def undoing(self) -> bool:
        """Whether it undoes what earlier attempts have done: the job's end was decided before."""
        return self._engine is not None and self._engine.ending is not None

    def count_threads(self) -> int:
        """How many threads run for it, which nothing can end; the outcome waits for them."""
        plain = self._work is not None and self._work.started and not self._main_done
        return self.engine.calls.threads + plain

    async def execute(self) -> Outcome:
        """Run the workflow's function, and tell what it ended in.

        Whoever waits here and is cancelled ends the run as a shutdown does.
        """
        if self._forced is not None and self._over:
            return self._forced
        self._future = self.loop.create_future()
        self.start()
        try:
            return await self._future
        except asyncio.CancelledError:
            if not self._over:
                self._future = self.loop.create_future()
                self.end(EndReason.SHUTDOWN)
                await self._future
            raise

    def start(self) -> None:
        """Start the workflow's function; what it was made for is told when nothing of the run goes on any more."""
        if self._forced is not None:
            return
        self._main_done = False
        if self.program.is_async:
            context: Context[Any] = Context(self.input, self)
            self._task = self.loop.create_task(self._run(context))
            self._task.add_done_callback(self._task_ended)
            if self.spec.timeout and self.undoing:
                # it comes again to where it registered what is to be undone, and may not hang on the way
                self._replaying = self.loop.call_later(self.spec.timeout / 1000, self._task.cancel)
        else:
            engine = self.engine
            plain: SyncContext[Any] = SyncContext(self.input, self)
            variables = contextvars.copy_context()
            self._work = self.program.threads.submit(
                lambda: variables.run(engine.run_plain, self.program.function, plain), self._thread_ended
            )

    def end(self, reason: EndReason, detail: str = "") -> None:
        """End the run: its tasks are cancelled and may clean up, and its steps write nothing any more.

        The first reason counts. To be called in the event loop.

        Args:
            reason: Why.
            detail: The reason of a cancellation, as its caller gave it.
        """
        if self.engine.ending is not None and reason in (EndReason.CANCELLED, EndReason.TIMEOUT):
            return  # the job is ending already, and what it has to undo is not cut short
        if self._forced is None and not self._over:
            self.ended = reason
            self._end(self._outcome_of(reason, detail), reason.value)

    def event_arrived(self, name: str) -> None:
        """Have the steps that wait for an event look for it."""
        self.engine.calls.tell(name)

    async def _run(self, context: Context[Any]) -> None:
        try:
            value = await self.program.function(context)
        except BaseException as error:  # noqa: BLE001 - whatever leaves user code fails the job and not the worker
            self._raised(error)
        else:
            self._returned(value)
            if self._engine is None or self._engine.ending is None:
                # a turn of the loop before the task is done, which tells nobody then
                if self._task is not None:
                    self._task.remove_done_callback(self._task_ended)
                self._main_ended()

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if self._main_done:
            return
        if task.cancelled() and self._forced is None:  # before its first step
            self._raised(asyncio.CancelledError())
        self._main_ended()

    def _thread_ended(self, value: Any, error: BaseException | None) -> None:
        if error is not None:
            self._raised(error)
        elif inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            self._raised(TypeError("the workflow is a plain function that returned an awaitable: write it `async def`"))
        else:
            self._returned(value)
        self._main_ended()

    def _returned(self, value: Any) -> None:
        if self._forced is None and (self._engine is None or self._engine.ending is None):
            try:
                self._outcome = Completed(self.program.serializer.dumps(value))
            except Exception as error:  # noqa: BLE001 - a serializer may raise anything
                self._outcome = self._decide(self.engine.values.unwritten(error, "its result"))
            except BaseException as error:  # noqa: BLE001 - an extension that panics raises one that is no Exception
                self._outcome = self._decide(error)

    def _raised(self, error: BaseException) -> None:
        if self._forced is None:
            if self.engine.ending is None:
                self._outcome = self._continued(error) if isinstance(error, ContinueAsNew) else self._decide(error)
        elif isinstance(error, Exception):
            logger.warning("%s raised while it was being ended", self._name, exc_info=error)

    def _continued(self, signal: ContinueAsNew) -> Outcome:
        try:
            return Continued(self.engine.values.dump(signal.input, "its next input"))
        except BaseException as error:  # noqa: BLE001 - as above
            return self._decide(error)

    async def _undo(self, ending: Ending) -> None:
        """Everything that the run has registered is undone; then the job ends."""
        try:
            self._outcome = await compensate(
                self.engine,
                self.engine.undos,
                ending,
                spec=self.spec,
                failures=self.failures,
                rng=self.program.rng,
            )
        except BaseException as error:  # noqa: BLE001 - whatever leaves user code is the job's
            if self._forced is None:
                self._outcome = self._decide(error)

    def _undone(self, _: asyncio.Task[None]) -> None:
        self._undoing = None
        self.settle()

    def _main_ended(self) -> None:
        self._main_done = True
        if self._replaying is not None:
            self._replaying.cancel()
        engine = self._engine
        if engine is None:
            self.settle()
            return
        if engine.ending is not None and self._forced is None:
            self._undoing = self.loop.create_task(self._undo(engine.ending))
            self._undoing.add_done_callback(self._undone)
            return
        calls = engine.calls
        calls.returned = True
        if calls.forgotten and isinstance(self._outcome, Completed):
            logger.warning(
                "%s has returned, and steps that it has called never began: %s. Await every step that is called.",
                self._name,
                ", ".join(map(repr, calls.forgotten)),
            )
        if self._forced is None and calls.open:
            running = sorted(call.path for call in calls.open if call.kind is Kind.DO)
            if running:
                logger.warning(
                    "%s has returned or raised while steps were still running, which are awaited now: %s. Await every "
                    "step before the run ends.",
                    self._name,
                    ", ".join(map(repr, running)),
                )
            for call in list(calls.open):
                # a wait that nobody awaits has no effect, unless an outer step ends with it
                if call.kind is not Kind.DO and (call.outer is None or not call.outer.open):
                    _cancel(call.task)
        self.settle()

    def sleep(self) -> None:
        """Waits are all that is left: sleep in Redis, if they take long enough."""
        parked = self.engine.calls.parked
        instants = [call.until_ms for call in parked if call.until_ms is not None]
        first = min(instants, default=None)
        if first is not None and first - self.journal.now_ms() <= self.program.in_place_ms:
            return
        if self._main_done:
            for call in list(self.engine.calls.open):
                _cancel(call.task)
            return
        events = tuple(sorted({call.event for call in parked if call.event is not None}))
        self._end(Suspended(first, events), "it sleeps")

    def lost(self) -> None:
        """A write was refused because the claim is lost."""
        self.end(EndReason.LOST)

    def _outcome_of(self, reason: EndReason, detail: str) -> Outcome:
        match reason:
            case EndReason.CANCELLED:
                return Cancelled(detail)
            case EndReason.TIMEOUT:
                return self._decide(TimeoutError(detail or self._timeout_text()))
            case EndReason.LOST | EndReason.SHUTDOWN:
                return Released()

    def _timeout_text(self) -> str:
        text = f"the attempt took longer than its timeout, {self.spec.timeout / 1000:g} s"
        steps = ", ".join(sorted(repr(call.path) for call in self.engine.calls.open))
        return text + (f"; steps that were not over: {steps}" if steps else "")

    def _decide(self, error: BaseException) -> Retry | Failed | Limited:
        self.error = error
        return decide(
            error,
            self.spec,
            self.failures,
            non_retryable=self.program.non_retryable,
            rng=self.program.rng,
        )

    def _end(self, outcome: Outcome, why: str) -> None:
        """The one routine that ends a run before it returns."""
        self._forced = outcome
        self.engine.calls.end(f"the run has ended: {why}")
        if self._main_done and self._undoing is None and not self.engine.calls.open and not self.engine.calls.threads:
            self.settle()
            return
        self._timer = self.loop.call_later(self.program.end_timeout, self._overdue)
        spared = _current_task()  # a step that found its claim lost raises the signal itself
        for task in self._tasks():
            self._await_end(task)
        for running in (self._task, self._undoing):
            if running is not None and running is not spared:
                running.cancel()
        if self._work is not None and self._work.withdraw():
            self._main_done = True
        self.loop.call_soon(self._cancel_rest, spared, TURNS)

    def _cancel_rest(self, spared: asyncio.Task[Any] | None, turns: int) -> None:
        """Cancel what the cancellation of the run's task has not reached by itself.

        It goes down through task groups first: a task that it reached again would have its clean-up cut off.
        """
        if turns:
            self.loop.call_soon(self._cancel_rest, spared, turns - 1)
            return
        for task in self._tasks():
            self._await_end(task)
        for task, cancellations in self._ending.items():
            if task is not spared and task.cancelling() == cancellations:
                task.cancel()
        self.settle()

    def _tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks to be ended: the run's own, and those inside an engine call."""
        tasks = {call.task for call in self.engine.calls.open} | self.engine.tasks | {self._task, self._undoing}
        return {task for task in tasks if task is not None and not task.done()}

    def _await_end(self, task: asyncio.Task[Any]) -> None:
        if task not in self._ending:
            self._ending[task] = task.cancelling()
            task.add_done_callback(self._end_of)

    def _end_of(self, task: asyncio.Task[Any]) -> None:
        if self._ending.pop(task, None) is not None:
            self.settle()

    def _overdue(self) -> None:
        """A run that was ended goes on: cancel it once more."""
        if self._ending:
            logger.warning(
                "%s was ended (%s) and still goes on after %g s; it is cancelled again",
                self._name, self.engine.calls.ended, self.program.end_timeout,
            )  # fmt: skip
            for task in self._ending:
                task.cancel()
            self._timer = self.loop.call_later(min(LAST_CALL, self.program.end_timeout), self._abandon)
        if self.count_threads():
            logger.warning(
                "%s was ended (%s) and is kept until its %d thread(s) return, which nothing can end",
                self._name, self.engine.calls.ended, self.count_threads(),
            )  # fmt: skip

    def _abandon(self) -> None:
        if self._ending:
            logger.error("%s was ended and does not stop; it is left behind, and its steps write nothing", self._name)
            self._ending.clear()
            self._main_done = self._main_done or self._task is not None
            self.settle()

    def settle(self) -> None:
        """Give the outcome, if nothing of the run goes on."""
        if self._over or not self._main_done or self._ending or self._undoing is not None:
            return
        engine, outcome = self._engine, self._forced
        if engine is not None and (engine.calls.threads or (outcome is None and engine.calls.open)):
            return
        if outcome is None:
            outcome = self._outcome
        if outcome is None:
            raise RuntimeError("a run has ended in nothing")
        if engine is not None and engine.undos and isinstance(outcome, (Failed, Cancelled)):
            outcome = msgspec.structs.replace(outcome, undo=len(engine.undos))
        self._over = True
        # a thread may have asked for one meanwhile: whoever comes second of us closes it
        if self._engine is not None:
            self._engine.calls.close()
        if self._timer is not None:
            self._timer.cancel()
        finisher, self.finisher = self.finisher, None
        if finisher is not None:
            finisher.finish(outcome)
        if self._future is not None and not self._future.done():
            self._future.set_result(outcome)

    @property
    def _name(self) -> str:
        return f"workflow {self.program.workflow!r}, job {self.job_id!r}: the run"


def _cancel(task: asyncio.Task[Any] | None) -> None:
    if task is not None:
        task.cancel()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
