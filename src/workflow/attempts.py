"""What turns a claim of a workflow's queue into a run of its function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..errors import SerializationError
from ..queue.claim import Claim, EndReason
from ..queue.deciding import decide
from ..queue.outcome import Failed, Failure, Outcome
from ..queue.worker import CLEAN_UP
from .claim_journal import ClaimJournal
from .run import Run
from .threads import Threads

if TYPE_CHECKING:
    from ..queue.recording import Recorder
    from .workflow import Workflow

# a run gives up on its clean-up before the worker does, so that its outcome is its own
END_TIMEOUT: Final = CLEAN_UP - 1.5


class Attempts:
    """Runs the claims of one workflow for one worker."""

    def __init__(self, workflow: Workflow[Any, Any], threads: Threads) -> None:
        self._workflow = workflow
        self._threads = threads
        self.recorder: Recorder | None = None

    async def __call__(self, claim: Claim) -> Outcome:
        """Run a claim, to its outcome."""
        workflow = self._workflow
        try:
            outcome = await self._run(claim)
        except Exception as error:  # noqa: BLE001 - what fails around a run fails its job, in texts that are coded too
            outcome = decide(error, claim.spec, claim.failures, non_retryable=workflow.non_retryable)
        return workflow.notes.write_outcome(outcome)

    async def _run(self, claim: Claim) -> Outcome:
        workflow = self._workflow
        assert self.recorder is not None, "the worker has not started"  # noqa: S101 - a mistake of ours
        try:
            value = workflow.read_input(claim.data)
        except SerializationError as error:
            # no attempt will read it better: a person has to mend the data or the code, and retry it
            return Failed(Failure.of(error))
        run = Run(
            workflow.function,
            value,
            workflow=claim.workflow,
            job_id=claim.id,
            spec=claim.spec,
            failures=claim.failures,
            journal=ClaimJournal(claim, self.recorder),
            serializer=workflow.serializer,
            notes=workflow.notes,
            progress_type=workflow.progress_type,
            threads=self._threads,
            non_retryable=workflow.non_retryable,
            end_timeout=END_TIMEOUT,
        )
        outcome = run.start()
        claim.threads = lambda: run.threads_running
        claim.on_event(run.event_arrived)

        def end(reason: EndReason) -> None:
            run.end(reason, workflow.notes.read(claim.detail))

        claim.on_end(end)
        result = await outcome
        if run.ended is EndReason.LOST:
            claim.end(EndReason.LOST)
        return result
