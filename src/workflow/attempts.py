"""What turns a claim of a workflow's queue into a run of its function."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..errors import JobFailedError
from ..queue.claim import Claim, EndReason
from ..queue.deciding import decide
from ..queue.job import Job as QueueJob
from ..queue.outcome import Failed, Failure, Outcome, Retry
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

# what undoes has times of its own, and ends as was decided before
SPARED: Final = frozenset({EndReason.CANCELLED, EndReason.TIMEOUT})
# a run gives up on its clean-up before the worker does, so that its outcome is its own
END_TIMEOUT: Final = CLEAN_UP - 1.5


class Attempts:
    """Runs the claims of one workflow for one worker."""

    def __init__(self, workflow: Workflow[Any, Any], threads: Threads, callbacks: Callbacks) -> None:
        self._workflow = workflow
        self._program = program_of(workflow, threads)
        self._callbacks = callbacks
        self._observer: Observer | None = None
        self._recorder: Recorder | None = None

    def prepare(self, recorder: Recorder) -> None:
        """The worker starts, and records with this."""
        self._recorder = recorder
        self._observer = self._workflow.observer()

    def __call__(self, claim: Claim) -> asyncio.Future[Outcome]:
        """Run a claim, to its outcome."""
        run, observed = None, None if self._observer is None else self._observer.attempt(claim)
        try:
            value = self._workflow.read_input(claim.data)
            run = self._run(claim, value, observed)
            future = run.start() if observed is None else observed.begin(run.start)
        except BaseException as error:  # noqa: BLE001 - what fails before the function runs fails its job
            # an input that does not fit is read no better by another attempt: a person has to mend it, and retry
            outcome = Failed(Failure.of(error)) if run is None else decide(error, claim.spec, claim.failures)
            future = asyncio.get_running_loop().create_future()
            future.set_result(self._finish(claim, run, observed, outcome, error))
            return future

        def end(reason: EndReason) -> None:
            run.end(reason, run.notes.read(claim.detail))

        claim.on_end(end)
        return future

    def _run(self, claim: Claim, value: Any, observed: ObservedAttempt | None) -> Run:
        assert self._recorder is not None, "the worker has not started"  # noqa: S101 - a mistake of ours
        run = Run(
            self._program,
            value,
            job_id=claim.id,
            spec=claim.spec,
            failures=claim.failures,
            journal=ClaimJournal(claim, self._recorder),
            observed=observed,
            finish=lambda outcome: self._finish(claim, run, observed, outcome, run.error),
        )
        claim.threads = lambda: run.threads_running
        claim.on_event(run.event_arrived)
        if run.undoing:
            claim.spared = SPARED
        return run

    def _finish(
        self,
        claim: Claim,
        run: Run | None,
        observed: ObservedAttempt | None,
        outcome: Outcome,
        error: BaseException | None,
    ) -> Outcome:
        """An attempt has ended; the outcome as it is committed."""
        if run is not None and run.ended is EndReason.LOST:
            claim.end(EndReason.LOST)
        if observed is not None:
            observed.ended(outcome, lost=claim.ended is EndReason.LOST)
        if observed is not None or self._callbacks.wants_failures:
            claim.settled = partial(self._settled, claim, run, error, observed)
        return self._workflow.notes.write_outcome(outcome)

    def _settled(
        self,
        claim: Claim,
        run: Run | None,
        error: BaseException | None,
        observed: ObservedAttempt | None,
        outcome: Outcome,
    ) -> None:
        """An outcome has been committed: tell of it."""
        undoing = run is not None and run.undoing
        if observed is not None:
            observed.settled(outcome, goes_on=isinstance(outcome, Failed) and outcome.undo > 0 and not undoing)
        if not isinstance(outcome, (Failed, Retry)) or (isinstance(outcome, Failed) and undoing):
            return  # everything is undone after a failure that was told of then
        workflow = self._workflow
        if error is None:
            failure = outcome.failure.with_texts(workflow.notes.read)
            error = JobFailedError(
                workflow=claim.workflow,
                job_id=claim.id,
                type=failure.type,
                message=failure.message,
                traceback=failure.traceback,
            )
        self._callbacks.failed(Job(workflow, QueueJob(workflow.queue, claim.id, claim.spec.run)), error)


def program_of(
    workflow: Workflow[Any, Any], threads: Threads, function: Callable[[Any], Any] | None = None, **settings: Any
) -> Program:
    """What the runs of a workflow are to do, with its function or with another that stands in for it."""
    return Program(
        function=function or workflow.function,
        workflow=workflow.id,
        serializer=workflow.serializer,
        notes=workflow.notes,
        progress_type=workflow.progress_type,
        namespace=workflow.namespace,
        threads=threads,
        non_retryable=workflow.non_retryable,
        end_timeout=END_TIMEOUT,
        **settings,
    )
