"""The jobs in a worker's hands, and what their runs end in."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from . import keys
from .calling import Caller, Pauses
from .claim import Claim, Concludes, EndReason
from .deciding import decide
from .lease import LeaseKeeper
from .link import NotSentError, UnansweredError
from .outcome import Cancelled, Completed, Outcome, Released

if TYPE_CHECKING:
    from .worker import Handler

logger: Final = logging.getLogger(__name__)


class Runs:
    """Runs claims and gathers their outcomes.

    Attributes:
        outbox: Outcomes that wait to be committed.
        answered: Called with a claim whose outcome has been committed, or is refused.
    """

    def __init__(self, handlers: Mapping[str, Handler], leases: LeaseKeeper, *, clean_up: float, call: Caller) -> None:
        """Run with ``handlers``; a run that was ended may clean up for ``clean_up`` seconds."""
        self._handlers = handlers
        self._leases = leases
        self._clean_up = clean_up
        self._call = call
        # with what is awaited, if anything is
        self._running: dict[Claim, asyncio.Future[Any] | None] = {}
        self._decided: set[Claim] = set()
        self._of_workflow: dict[str, int] = dict.fromkeys(handlers, 0)
        self._ending, self._over = self._watch_end, self._ended
        self._timers: dict[Claim, asyncio.TimerHandle] = {}
        # set when fewer run, where anybody waits for that
        self._fewer: asyncio.Event | None = None
        self._early: dict[str, list[list[str]]] = {}
        self.outbox: list[tuple[Claim, Outcome]] = []
        self.answered: Callable[[Claim], None] = leases.let_go
        self.changed: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._running)

    def of(self, workflow: str) -> int:
        """How many jobs of a workflow run."""
        return self._of_workflow[workflow]

    def names(self) -> list[str]:
        """What runs, as ``workflow:id``."""
        return [f"{claim.workflow}:{claim.id}" for claim in self._running]

    def expect(self, token: str) -> None:
        """Claims with this token may be on their way: the news of one can come before it."""
        self._early[token] = []

    def have(self, token: str) -> None:
        """No more claims with this token will come."""
        for news in self._early.pop(token, ()):
            self.control(news)

    async def idle(self) -> None:
        """Wait until nothing runs."""
        await self._until(lambda: not self._running)

    async def _until(self, over: Callable[[], bool]) -> None:
        while not over():
            self._fewer = self._fewer or asyncio.Event()
            self._fewer.clear()
            await self._fewer.wait()

    def begin(self, claim: Claim, *, unread: bool = False) -> None:
        """Run a claim; the checkpoints of an ``unread`` one are to be read first."""
        self._leases.hold(claim)
        self._of_workflow[claim.workflow] += 1
        self._running[claim] = None
        claim.ending, claim.over = self._ending, self._over
        if claim.spec.timeout and not unread:
            self._start_timer(claim)
        answer: Awaitable[Any] | Concludes
        try:
            answer = self._read_first(claim) if unread else self._handlers[claim.workflow](claim)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises belongs to its job
            self._ended(claim, error)
            return
        if isinstance(answer, Concludes):
            return
        if isinstance(answer, asyncio.Future):
            running = answer
            answer.add_done_callback(partial(self._answered, claim))
        else:
            run = _TaskRun(claim, answer, self._over)
            running = run.task = asyncio.get_running_loop().create_task(run.drive())
            # an eager one may be over, and its job with it
            if claim.over is not None:
                running.add_done_callback(run.task_ended)
        if claim.over is not None:
            self._running[claim] = running

    def _start_timer(self, claim: Claim) -> None:
        loop = asyncio.get_running_loop()
        self._timers[claim] = loop.call_later(claim.spec.timeout / 1000, claim.end, EndReason.TIMEOUT)

    def hand_back(self, claim: Claim) -> None:
        """Give a claim back without running it."""
        self._leases.hold(claim)
        self._conclude(claim, Released())

    def control(self, news: list[str]) -> None:
        """News of a running job, from the control list: what, workflow, job, token, text."""
        what, workflow, job_id, token, text = news
        # news are rare, and runs begin all the time: they are in no list by their jobs
        its = (
            each for each in self._running if each.id == job_id and each.workflow == workflow and each.token == token
        )
        claim = next(its, None)
        if claim is None:
            if token in self._early:
                self._early[token].append(news)
            return
        if what == "cancel":
            claim.end(EndReason.CANCELLED, text)
        elif what == "lost":
            claim.end(EndReason.LOST)
        elif what == "event":
            claim.notify(text)
        elif what == "child":
            claim.notify(f"\t{text}")

    async def end_all(self) -> None:
        """End every run for a shutdown, and wait until each has ended or had its time to clean up.

        A thread cannot be ended: its job is waited for, and is never handed back while it runs.
        """
        for claim in tuple(self._running):
            claim.end(EndReason.SHUTDOWN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._clean_up + 1):
                await self._until(lambda: self._running.keys() <= self._decided)
        while held := {claim for claim in self._running if claim.count_threads()}:
            logger.warning("waiting for %d jobs whose threads cannot be ended", len(held))
            await self._until(lambda: held.isdisjoint(self._running))

    def _answered(self, claim: Claim, running: asyncio.Future[Any]) -> None:
        try:
            outcome = _outcome_of(claim, running.result())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises belongs to its job
            outcome = _outcome_of_error(claim, error)
        self._ended(claim, outcome)

    def _ended(self, claim: Claim, result: Outcome | BaseException) -> None:
        if claim.over is None:
            return  # it has concluded by itself
        if self._timers and (timer := self._timers.pop(claim, None)) is not None:
            timer.cancel()
        self._running.pop(claim, None)
        self._of_workflow[claim.workflow] -= 1
        self._conclude(claim, _outcome_of_error(claim, result) if isinstance(result, BaseException) else result)
        claim.let_go()
        if self._fewer is not None:
            self._fewer.set()

    def _conclude(self, claim: Claim, outcome: Outcome) -> None:
        """A claim has its outcome; one that was lost, or had one before, has none to commit."""
        if claim.ended is EndReason.LOST:
            self._leases.let_go(claim)
            logger.warning(
                "job %r of workflow %r was taken over, or removed: its run here is discarded", claim.id, claim.workflow
            )
        elif claim in self._decided:
            self._decided.discard(claim)
        else:
            self.outbox.append((claim, outcome))
        self.changed()

    def _watch_end(self, claim: Claim) -> None:
        """A run was told to end: one that has not in time gets its outcome without it."""
        asyncio.get_running_loop().call_later(self._clean_up, self._force, claim)

    def _force(self, claim: Claim) -> None:
        if claim not in self._running or claim.count_threads() or claim.ended is EndReason.LOST:
            return
        logger.warning(
            "job %r of workflow %r goes on %g s after it was ended (%s): it is committed as that, and its slot is "
            "free when it ends",
            claim.id,
            claim.workflow,
            self._clean_up,
            claim.ended,
        )
        self.outbox.append((claim, _outcome_of_end(claim, Released())))
        self._decided.add(claim)
        self.changed()
        if self._fewer is not None:
            self._fewer.set()

    async def _read_first(self, claim: Claim) -> Outcome | str | Concludes | None:
        """Run a claim after its checkpoints, which were too many to come with it."""
        pauses = Pauses()
        while True:
            try:
                claim.steps = await self._call.read_hash(keys.steps(self._call.base, claim.workflow, claim.id))
                break
            except (NotSentError, UnansweredError):
                await asyncio.sleep(pauses.next())
        # its attempt begins now: who has too little time for the reading would never get further
        if claim.spec.timeout:
            self._start_timer(claim)
        answer = self._handlers[claim.workflow](claim)
        return answer if isinstance(answer, Concludes) else await answer


class _TaskRun:
    """A handler that is awaited, in a task that is cancelled when the job is to end."""

    __slots__ = ("_answer", "_begun", "_claim", "_over", "task")

    def __init__(
        self, claim: Claim, answer: Awaitable[Any], over: Callable[[Claim, Outcome | BaseException], None]
    ) -> None:
        self._claim = claim
        self._answer = answer
        self._over = over
        self._begun = False
        # None while an eager one takes its first step
        self.task: asyncio.Task[None] | None = None

    async def drive(self) -> None:
        """Await the handler."""
        claim = self._claim
        self._begun = True
        claim.run_by(self)
        try:
            result = await self._answer
            outcome = None if isinstance(result, Concludes) else _outcome_of(claim, result)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises belongs to its job
            outcome = _outcome_of_error(claim, error)
        if self.task is not None:
            self.task.remove_done_callback(self.task_ended)
        if outcome is not None:
            self._over(claim, outcome)

    def task_ended(self, task: asyncio.Task[None]) -> None:
        """Somebody who cancels all tasks may have cancelled it before its first step, which it never takes then."""
        if task.cancelled() and self._claim.over is not None:
            answer = self._answer
            if isinstance(answer, Coroutine):
                answer.close()
            self._over(self._claim, _outcome_of_error(self._claim, asyncio.CancelledError()))

    def end(self, reason: EndReason) -> None:
        del reason
        # not before it runs: a task that is cancelled before its first step never takes it
        task = (self.task or asyncio.current_task()) if self._begun else None
        if task is not None:
            task.cancel()

    def event_arrived(self, name: str) -> None:
        """Do nothing: it waits for none."""

    def count_threads(self) -> int:
        return 0


def _outcome_of(claim: Claim, result: object) -> Outcome:
    if result is None or isinstance(result, str):
        return _outcome_of_end(claim, Completed(result or ""))
    if isinstance(result, Outcome):
        # a handler that decides by itself knows whether its run was ended
        return result
    raise TypeError(f"a handler returns text, an outcome or None, not {type(result).__name__}")


def _outcome_of_error(claim: Claim, error: BaseException) -> Outcome:
    return _outcome_of_end(claim, decide(error, claim.spec, claim.failures))


def _outcome_of_end(claim: Claim, outcome: Outcome) -> Outcome:
    """What a run is committed as: if it was ended, as that, whatever it made of it."""
    if claim.ended is None:  # most often, and to match that takes longer
        return outcome
    match claim.ended:
        case EndReason.CANCELLED:
            return Cancelled(claim.detail)
        case EndReason.TIMEOUT:
            error = TimeoutError(f"the attempt took longer than its timeout of {claim.spec.timeout / 1000:g} s")
            return decide(error, claim.spec, claim.failures)
        case EndReason.SHUTDOWN:
            # a result is a result, however late it came
            return outcome if isinstance(outcome, Completed) else Released()
        case _:
            return outcome
