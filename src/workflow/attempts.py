"""What turns a claim of a workflow's queue into a run of its function."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from ..errors import JobFailedError
from ..queue.claim import Claim, EndReason
from ..queue.deciding import decide
from ..queue.job import Job as QueueJob
from ..queue.outcome import Failed, Failure, Outcome, Retry
from ..queue.worker import CLEAN_UP
from .claim_journal import ClaimJournal
from .job import Job
from .run import Run
from .telemetry import ObservedAttempt, Observer
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..queue.backoff import Rng
    from ..queue.recording import Recorder
    from ..queue.spec import Spec
    from .callbacks import Callbacks
    from .interceptor import Interceptor
    from .journal import Journal
    from .workflow import Workflow

# what undoes has times of its own, and ends as was decided before
SPARED: Final = frozenset({EndReason.CANCELLED, EndReason.TIMEOUT})
# a run gives up on its clean-up before the worker does, so that its outcome is its own
END_TIMEOUT: Final = CLEAN_UP - 1.5


class Attempts:
    """Runs the claims of one workflow for one worker."""

    def __init__(self, workflow: Workflow[Any, Any], threads: Threads, callbacks: Callbacks) -> None:
        self._workflow = workflow
        self._threads = threads
        self._callbacks = callbacks
        self._observer: Observer | None = None
        self._recorder: Recorder | None = None

    def prepare(self, recorder: Recorder) -> None:
        """The worker starts, and records with this."""
        self._recorder = recorder
        self._observer = self._workflow.observer()

    async def __call__(self, claim: Claim) -> Outcome:
        """Run a claim, to its outcome."""
        workflow, run = self._workflow, None
        observed = None if self._observer is None else self._observer.attempt(claim)
        outcome: Outcome
        error: BaseException | None
        try:
            value = workflow.read_input(claim.data)
            run = self._run(claim, value, observed)
            ended = run.start() if observed is None else observed.begin(run.start)
            outcome, error = await _outcome_of(claim, run, ended), run.error
        except Exception as broken:  # noqa: BLE001 - what fails around a run fails its job
            # an input that does not fit is read no better by another attempt: a person has to mend it, and retry
            outcome = Failed(Failure.of(broken)) if run is None else decide(broken, claim.spec, claim.failures)
            error = broken
        except BaseException:
            if observed is not None:
                observed.ended(None, lost=claim.ended is EndReason.LOST)
            raise
        if observed is not None:
            observed.ended(outcome, lost=claim.ended is EndReason.LOST)
        if observed is not None or self._callbacks.wants_failures:
            claim.settled = partial(self._settled, claim, run, error, observed)
        return workflow.notes.write_outcome(outcome)

    def _run(self, claim: Claim, value: Any, observed: ObservedAttempt | None) -> Run:
        workflow = self._workflow
        assert self._recorder is not None, "the worker has not started"  # noqa: S101 - a mistake of ours
        run = new_run(
            workflow,
            value,
            job_id=claim.id,
            spec=claim.spec,
            failures=claim.failures,
            journal=ClaimJournal(claim, self._recorder),
            threads=self._threads,
            observed=observed,
        )
        claim.threads = lambda: run.threads_running
        claim.on_event(run.event_arrived)
        if run.undoing:
            claim.spared = SPARED
        return run

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


class RunSettings(TypedDict, total=False):
    """What a worker has and a simulation has not, or has otherwise; see ``Run``."""

    observed: ObservedAttempt | None
    rng: Rng
    interceptor: Interceptor
    in_place_ms: int
    quiet: float


def new_run(
    workflow: Workflow[Any, Any],
    value: Any,
    *,
    job_id: str,
    spec: Spec,
    failures: int,
    journal: Journal,
    threads: Threads,
    function: Callable[[Any], Any] | None = None,
    **settings: Unpack[RunSettings],
) -> Run:
    """A run of a workflow's function, or of another that stands in for it."""
    return Run(
        function or workflow.function,
        value,
        workflow=workflow.id,
        job_id=job_id,
        spec=spec,
        failures=failures,
        journal=journal,
        serializer=workflow.serializer,
        notes=workflow.notes,
        progress_type=workflow.progress_type,
        namespace=workflow.namespace,
        threads=threads,
        non_retryable=workflow.non_retryable,
        end_timeout=END_TIMEOUT,
        **settings,
    )


async def _outcome_of(claim: Claim, run: Run, ended: asyncio.Future[Outcome]) -> Outcome:
    def end(reason: EndReason) -> None:
        run.end(reason, run.notes.read(claim.detail))

    claim.on_end(end)
    result = await ended
    if run.ended is EndReason.LOST:
        claim.end(EndReason.LOST)
    return result
