"""What turns a claim of a workflow's queue into a run of its function."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import JobFailedError
from ..queue.claim import CONCLUDES, Claim, Concludes, EndReason
from ..queue.deciding import decide
from ..queue.job import Job as QueueJob
from ..queue.outcome import Completed, Failed, Failure, Limited, Outcome, Retry
from ..queue.seldom import Seldom
from ..queue.worker import CLEAN_UP
from .claim_journal import ClaimJournal
from .job import Job
from .program import Program
from .run import Run
from .telemetry import ObservedAttempt, Observer
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..queue.recording import Recorder
    from .callbacks import Callbacks
    from .workflow import Workflow

logger: Final = logging.getLogger(__name__)
# what undoes has times of its own, and ends as was decided before
SPARED: Final = frozenset({EndReason.CANCELLED, EndReason.TIMEOUT})
# a run gives up on its clean-up before the worker does, so that its outcome is its own
END_TIMEOUT: Final = CLEAN_UP - 1.5


class Attempts:
    """Runs the claims of one workflow for one worker.

    Attributes:
        workflow: The workflow.
        program: What its runs are to do.
        callbacks: Whom to tell of failures.
        observer: What watches its attempts, where anybody wants to know.
        recorder: Writes their checkpoints; None before the worker has started.
        loop: The event loop that they run in; None before that.
    """

    def __init__(self, workflow: Workflow[Any, Any], threads: Threads, callbacks: Callbacks) -> None:
        self.workflow = workflow
        self.program = program_of(workflow, threads)
        self.callbacks = callbacks
        self.observer: Observer | None = None
        self.recorder: Recorder | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._seldom = Seldom()

    def prepare(self, recorder: Recorder) -> None:
        """The worker starts, in this event loop, and records with this."""
        self.recorder = recorder
        self.loop = asyncio.get_running_loop()
        self.observer = self.workflow.observer()

    def __call__(self, claim: Claim) -> Concludes:
        """Run a claim, which is concluded with its outcome."""
        attempt = Attempt(self, claim)
        try:
            attempt.start()
        except BaseException as error:  # noqa: BLE001 - what fails before the function runs fails its job
            attempt.finish(attempt.failed(error))
        return CONCLUDES

    def tell_of_limiter(self, claim: Claim, limiter: str) -> None:
        """A run was told to slow down by a limiter that does not hold for it; said now and then."""
        if self._seldom.may_say("limiter"):
            logger.warning(
                "job %r of workflow %r raised RateLimited for limiter %r, which does not hold for it: nobody else is "
                "paused. Those that do: %s",
                claim.id,
                claim.workflow,
                limiter,
                ", ".join(map(repr, self.workflow.queue.limiters)) or "none",
            )

    def tell_of_unread(self, claim: Claim, error: BaseException) -> bool:
        """An input cannot be read, and it may not be the only one; said now and then. Whether it was."""
        says = self._seldom.may_say("unread")
        if says:
            logger.error(
                "job %r of workflow %r fails at once, and others may too: %s. If the code has changed, mend it (give "
                "new fields a default), then retry what has failed",
                claim.id,
                claim.workflow,
                error,
            )
        return says


class Attempt(msgspec.Struct, eq=False):
    """One attempt at a claimed job: what its run and its claim tell each other."""

    attempts: Attempts
    claim: Claim
    _run: Run | None = None
    _observed: ObservedAttempt | None = None
    _error: BaseException | None = None
    _explained: bool = False

    def start(self) -> None:
        """Start the run."""
        attempts, claim = self.attempts, self.claim
        recorder, loop = attempts.recorder, attempts.loop
        assert recorder is not None, "the worker has not started"  # noqa: S101 - a mistake of ours
        assert loop is not None, "the worker has not started"  # noqa: S101 - a mistake of ours
        if attempts.observer is not None:
            self._observed = attempts.observer.attempt(claim)
        run = Run(
            attempts.program,
            attempts.workflow.payloads.read_input(claim.data),
            claim.id,
            claim.spec,
            claim.failures,
            ClaimJournal(claim, recorder, claim.steps),
            loop,
            self._observed,
            self,
        )
        self._run = run
        if run.undoing:
            claim.spared = SPARED
        if self._observed is None:
            run.start()
        else:
            self._observed.begin(run.start)
        claim.run_by(self)

    def failed(self, error: BaseException) -> Outcome:
        """What it ends in that has not started."""
        self._error = error
        if self._run is None:
            # an input that does not fit is read no better by another attempt: a person has to mend it, and retry
            self._explained = self.attempts.tell_of_unread(self.claim, error)
            return Failed(Failure.of(error))
        return decide(error, self.claim.spec, self.claim.failures)

    def finish(self, outcome: Outcome) -> None:
        """It has ended: conclude with the outcome as it is committed."""
        run = self._run
        watched = self._observed is not None or self.attempts.callbacks.wants_failures
        if type(outcome) is Completed and not watched and run is not None and run.ended is None:
            # most are like this, and there is nothing to notice
            self.claim.conclude(outcome)
            return
        try:
            result: Outcome | BaseException = self._noticed(outcome)
        except BaseException as error:  # noqa: BLE001 - what fails after the function ran fails its job
            result = error
        self.claim.conclude(result)

    def _noticed(self, outcome: Outcome) -> Outcome:
        claim, run = self.claim, self._run
        if run is not None:
            self._error = self._error or run.error
            if run.ended is EndReason.LOST:
                claim.end(EndReason.LOST)
        if isinstance(outcome, Limited) and outcome.limiter not in ("", *self.attempts.workflow.queue.limiters):
            self.attempts.tell_of_limiter(claim, outcome.limiter)
        if self._observed is not None:
            self._observed.ended(outcome, lost=claim.ended is EndReason.LOST)
        claim.settled = self._settled
        return self.attempts.workflow.notes.write_outcome(outcome)

    def end(self, reason: EndReason) -> None:
        """The worker ends the run."""
        if self._run is not None:
            self._run.end(reason, self._run.notes.read(self.claim.detail))

    def event_arrived(self, name: str) -> None:
        """An event has arrived for the job."""
        if self._run is not None:
            self._run.event_arrived(name)

    def count_threads(self) -> int:
        """How many threads of the run are going."""
        return 0 if self._run is None else self._run.count_threads()

    def _settled(self, outcome: Outcome) -> None:
        """The outcome has been committed: tell of it."""
        claim, error = self.claim, self._error
        undoing = self._run is not None and self._run.undoing
        if self._observed is not None:
            self._observed.settled(outcome, goes_on=isinstance(outcome, Failed) and outcome.undo > 0 and not undoing)
        if not isinstance(outcome, (Failed, Retry)) or (isinstance(outcome, Failed) and undoing):
            return  # everything is undone after a failure that was told of then
        workflow = self.attempts.workflow
        if error is None:
            failure = outcome.failure.with_texts(workflow.notes.read)
            error = JobFailedError(
                workflow=claim.workflow,
                job_id=claim.id,
                type=failure.type,
                message=failure.message,
                traceback=failure.traceback,
            )
        if not undoing:
            self._log_failure(outcome, error)
        self.attempts.callbacks.failed(Job(workflow, QueueJob(workflow.queue, claim.id, claim.spec.run)), error)

    def _log_failure(self, outcome: Failed | Retry, error: BaseException) -> None:
        claim = self.claim
        logger.log(
            logging.WARNING if isinstance(outcome, Retry) else logging.ERROR,
            "attempt %d of %d at job %r of workflow %r has failed, %s",
            claim.attempt,
            claim.spec.max_attempts,
            claim.id,
            claim.workflow,
            f"the next follows in {outcome.delay_ms / 1000:g} s" if isinstance(outcome, Retry) else "for good",
            exc_info=None if self._explained else error,
            extra={"workflow": claim.workflow, "job_id": claim.id, "attempt": claim.attempt},
        )


def program_of(
    workflow: Workflow[Any, Any], threads: Threads, function: Callable[[Any], Any] | None = None, **settings: Any
) -> Program:
    """What the runs of a workflow are to do, with its function or with another that stands in for it."""
    return Program(
        function=function or workflow.function,
        workflow=workflow.id,
        serializer=workflow.payloads.serializer,
        notes=workflow.notes,
        progress_type=workflow.payloads.progress_type,
        namespace=workflow.namespace,
        threads=threads,
        non_retryable=workflow.non_retryable,
        end_timeout=END_TIMEOUT,
        **settings,
    )
