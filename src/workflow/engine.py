"""What a run's steps share: its open calls, its journal, its values, its threads."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from ..errors import StepError, StepFailedError
from ..queue.deciding import is_final
from ..queue.notes import LONGEST_LINE
from ..queue.scripts.descending import NewChild, Policy
from ..queue.spec import Spec
from .calls import Call, Calls, RunEnded, here
from .compensation import REGISTERED_PATH, UNDER_WAY_PATH, Ending, Undo
from .journal import CHILD_DONE, DONE, FAILED, ClaimLost, Journal, Kind, pending, read_checkpoint
from .paths import escaped
from .program import Program
from .telemetry import UNOBSERVED, ObservedAttempt
from .values import Values, check_function, result_hint

T = TypeVar("T")

DO_DONE = Kind.DO + DONE
DO_FAILED = Kind.DO + FAILED


class Engine(msgspec.Struct, eq=False):
    """The inside of one run.

    Attributes:
        program: What it runs.
        spec: The job's options.
        failures: Attempts that have failed before this one.
        calls: Its open calls.
        journal: Where its checkpoints are kept.
        values: How its values are written.
        loop: The event loop that it runs in.
        observed: What its steps tell of themselves, where anybody wants to know.
        thread: The thread of a plain workflow, by its identity; None in an async one.
        tasks: What a plain workflow's thread has the loop do.
        undos: The compensations that were registered.
        undos_known: How many compensations Redis knows of.
        ending: How the job ends when everything is undone; None while nothing is being undone.
        undoing: Whether compensations run now.
    """

    program: Program
    spec: Spec
    failures: int
    calls: Calls
    journal: Journal
    values: Values
    loop: asyncio.AbstractEventLoop
    observed: ObservedAttempt | None = None
    thread: int | None = None
    tasks: frozenset[asyncio.Task[object]] = frozenset()
    undos: tuple[Undo, ...] = ()
    undos_known: int = 0
    ending: Ending | None = None
    undoing: bool = False

    def recall(self) -> None:
        """Go on where earlier attempts have left the job: it may be being undone."""
        under_way = self.calls.recorded.get(UNDER_WAY_PATH)
        self.ending = None if under_way is None else Ending.read(under_way, self.values)
        self.undos_known = int(self.calls.recorded.get(REGISTERED_PATH, 0))

    async def record(self, path: str, text: str) -> None:
        """Store a checkpoint.

        Raises:
            RunEnded: The run has ended, or does now because the claim is lost; nothing was written.
        """
        if self.calls.ended:
            await self.calls.refuse(None)
        await self.keep_undos()
        if not await self.journal.record(path, text):
            raise self._lost()

    async def keep_undos(self) -> None:
        """Have it stored that compensations were registered: before what they undo, and before the job may sleep.

        Raises:
            RunEnded: The claim is lost.
        """
        count = len(self.undos)
        if count > self.undos_known:
            if not await self.journal.record(REGISTERED_PATH, str(count)):
                raise self._lost()
            self.undos_known = max(self.undos_known, count)

    def register_undo(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Have something undone when the job fails for good or is cancelled.

        Raises:
            StepError: The name is unfit, or taken in its scope; or this is inside a step.
            RunEnded: The job is being undone, and this was the last that is to be; or the run is over.
        """
        if self.calls.owner is None:
            raise RunEnded(self.calls.ended)
        scope = here.get()
        if scope is None or scope.calls is not self.calls:
            scope = None
        elif isinstance(scope, Call) or scope.outer is not None:
            raise StepError(
                f"compensation {name!r} is registered inside a step, which does not run again once it has finished: "
                f"register it before the step"
            )
        check_function(function, name)
        path = f"{UNDER_WAY_PATH}/{scope.prefix if scope else ''}{escaped(name)}"
        if any(undo.path == path for undo in self.undos):
            raise StepError(f"compensation {name!r} is registered already: give each a name of its own in its scope")
        self.undos = (*self.undos, Undo(path, function, args, kwargs))
        if self.ending is not None and len(self.undos) >= self.undos_known:
            raise RunEnded("the job is being undone")

    def must_run(self, call: Call) -> None:
        """A step has no result yet. While the job is being undone no step begins: the run ends here.

        Raises:
            StepError: A compensation makes the call.
            RunEnded: The job is being undone.
        """
        if self.undoing:
            raise StepError(f"step {call.path!r} is in a compensation, which is a step itself and can have none inside")
        if self.ending is not None:
            raise RunEnded(f"the job is being undone, and step {call.path!r} had not finished")

    async def begin_wait(self, call: Call, until_ms: int) -> None:
        """Fix the instant at which a call's wait is over."""
        text = pending(call.kind, until_ms)
        await self.record(call.path, text)
        self.keep(call, text)
        call.until_ms = until_ms

    async def take_event(self, event: str, path: str, otherwise: str) -> str | None:
        """Take an event, as ``Journal.take_event`` does.

        Raises:
            RunEnded: The run has ended, or does now because the claim is lost; nothing was written.
        """
        if self.calls.ended:
            await self.calls.refuse(None)
        await self.keep_undos()
        try:
            return await self.journal.take_event(event, path, otherwise)
        except ClaimLost:
            raise self._lost() from None

    async def start_children(self, call: Call, children: Sequence[NewChild], *, policy: Policy, most: int = 0) -> None:
        """Start children that a call will wait for.

        Raises:
            RunEnded: The run has ended, or does now because the claim is lost.
        """
        if self.calls.ended:
            await self.calls.refuse(None)
        await self.keep_undos()
        call.event = "\t" + call.path
        if not await self.journal.start_children(call.path, children, policy=policy, most=most):
            raise self._lost()

    async def await_children(
        self, call: Call, barrier: str, paths: Sequence[str], *, until_failure: bool = False
    ) -> None:
        """Wait until the ends of all children of a barrier stand at their paths (or that of one that has failed)."""
        recorded = self.calls.recorded
        call.event = "\t" + barrier
        while True:
            call.told = False
            missing = [path for path in paths if path not in recorded]
            if missing:
                found = await self.journal.reload()
                recorded.update((path, found[path]) for path in missing if path in found)
                missing = [path for path in missing if path not in found]
            broken = until_failure and any(not recorded.get(path, CHILD_DONE).startswith(CHILD_DONE) for path in paths)
            if broken or not missing:
                return
            self.must_run(call)
            if not call.told:
                await self.calls.park(call, None)

    async def progress(self, value: Any) -> None:
        """Say how far the job has come.

        Raises:
            RunEnded: The run has ended, or does now because the claim is lost.
            SerializationError: The value cannot be written, or is not of the workflow's progress type.
        """
        if self.calls.ended:
            await self.calls.refuse(None)
        text = self.values.dump(value, "its progress")
        if self.program.progress_type is not Any:
            self.values.check(text, self.program.progress_type, "its progress")
        if not await self.journal.progress(text):
            raise self._lost()

    async def log(self, line: str) -> None:
        """Write a line to the job's log.

        Raises:
            RunEnded: The run has ended, or does now because the claim is lost.
        """
        if self.calls.ended:
            await self.calls.refuse(None)
        if not await self.journal.log(self.values.notes.write(line[:LONGEST_LINE])):
            raise self._lost()

    def replay(self, call: Call, text: str, function: Any) -> Any:
        """The result of a step that an earlier attempt has finished.

        Raises:
            StepFailedError: It failed for good.
            StepError: Its name was that of another kind of step.
        """
        if self.program.interceptor is not None:
            self.program.interceptor.replays(call.path)
        self.replayed()
        state, rest = read_checkpoint(text, Kind.DO, call.path)
        if state == FAILED:
            failure = self.values.load_failure(rest)
            raise StepFailedError(
                step=call.path, type=failure.type, message=failure.message, traceback=failure.traceback
            )
        return self.values.load_again(rest, result_hint(function), "its result", call.path)

    def observe(self, kind: str, name: str, path: str) -> AbstractContextManager[object]:
        """Have a step that is not replayed be watched for the block, where anybody wants to know of it."""
        return UNOBSERVED if self.observed is None else self.observed.step(kind, name, path)

    def replayed(self) -> None:
        """A step gives what it gave in an earlier attempt."""
        if self.observed is not None:
            self.observed.replayed()

    def function_of(self, path: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """What to call for a step or a compensation: the function that was given, unless a test has another."""
        return function if self.program.interceptor is None else self.program.interceptor.runs(path, function)

    def failure_to_keep(self, call: Call, error: BaseException) -> str:
        """The checkpoint of a step that has raised; empty when there is none, so that it runs again.

        Raises:
            StepError: Instead of what would end the process if it left a task.
        """
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise StepError(
                f"step {call.path!r} raised {type(error).__name__}({error}), which would end the worker: raise an "
                f"exception instead"
            ) from error
        return DO_FAILED + self.values.dump_failure(error) if is_final(error, self.program.non_retryable) else ""

    def keep(self, call: Call, text: str) -> None:
        """Remember a checkpoint for this attempt, in which an outer step may be run again."""
        self.calls.recorded[call.path] = text

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run a plain function in a thread, which goes on when the caller is cancelled; the run ends after it."""
        # a pair and not set_exception, which refuses StopIteration
        future: asyncio.Future[tuple[T, BaseException | None]] = self.loop.create_future()
        work = self.program.threads.submit(function, partial(self._thread_ended, future))
        self.calls.threads += 1
        try:
            value, error = await future
        except asyncio.CancelledError:
            if work.withdraw():
                self.calls.threads -= 1
            raise
        if error is not None:
            raise error
        return value

    def run_plain(self, function: Callable[[Any], T], context: Any) -> T:
        """In its thread: run the function of a plain workflow."""
        self.thread = threading.get_ident()
        return function(context)

    def check_thread(self) -> None:
        """Whether a plain workflow may make an engine call here.

        Raises:
            StepError: This is not its thread.
            RunEnded: The run has ended.
        """
        if threading.get_ident() != self.thread:
            raise StepError(
                "the steps of a plain workflow are used in its own thread, one after another; for parallel branches "
                "write it with `async def`"
            )
        if self.calls.ended:
            raise RunEnded(self.calls.ended)

    def from_thread(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Have the loop run a coroutine for a plain workflow, whose thread waits for it.

        Raises:
            StepError: The caller is not in the workflow's thread.
            RunEnded: The run has ended.
        """
        try:
            self.check_thread()
        except BaseException:
            coroutine.close()
            raise
        future = asyncio.run_coroutine_threadsafe(self._tracked(coroutine), self.loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RunEnded(self.calls.ended or "the event loop ends") from None

    async def _tracked(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self.tasks |= {task}
        try:
            return await coroutine
        finally:
            self.tasks -= {task}

    def _lost(self) -> RunEnded:
        self.calls.lost()
        return RunEnded(self.calls.ended)

    def _thread_ended(self, future: "asyncio.Future[tuple[Any, BaseException | None]]", *ended: Any) -> None:
        if not future.done():
            future.set_result(ended)
        self.calls.thread_ended()
