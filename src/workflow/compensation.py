"""Compensations: what a run has registered to be undone when it fails for good or is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..queue.backoff import Rng, backoff_delay_ms
from ..queue.deciding import is_final
from ..queue.outcome import Cancelled, Failed, Failure, Outcome, Retry
from .values import Values, is_async

if TYPE_CHECKING:
    from ..queue.spec import Spec
    from .engine import Engine

logger: Final = logging.getLogger(__name__)
# what the scripts look for: that there are compensations, and that they are under way
REGISTERED_PATH: Final = "//undos"
UNDER_WAY_PATH: Final = "//undo"
LEAST_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Undo:
    """A compensation as it was registered."""

    path: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the job will end once everything is undone, and the attempts that had failed before that."""

    outcome: Failed | Cancelled
    failures: int

    @classmethod
    def read(cls, text: str, values: Values) -> Ending:
        """From the checkpoint that the scripts have written."""
        how, failures, rest = text.split(":", 2)
        outcome = Cancelled(values.notes.read(rest)) if how == "cancelled" else Failed(values.load_failure(rest))
        return cls(outcome, int(failures))


async def compensate(
    engine: Engine, undos: Sequence[Undo], ending: Ending, *, spec: Spec, failures: int, rng: Rng
) -> Outcome:
    """Undo in reverse, each once, and tell what the job ends in.

    One that raises, or takes longer than an attempt may, is tried again in a later attempt, each as often as the job
    may be attempted (three times at least) unless its error is for good; then the others go on without it, and the
    job's failure says so.

    Raises:
        RunEnded: The claim is lost.
    """
    attempts = max(spec.max_attempts, LEAST_ATTEMPTS)
    notes = engine.values.notes
    given_up: list[str] = []
    before = ending.failures  # attempts that had failed when the next one was first tried
    for undo in reversed(undos):
        recorded = engine.calls.recorded.get(undo.path)
        if recorded is not None:
            count, _, note = recorded.partition(":")
            before = int(count)
            if note:
                given_up.append(notes.read(note))
            continue
        try:
            async with asyncio.timeout(spec.timeout / 1000 if spec.timeout else None):
                await _call(engine, undo)
        except Exception as error:
            failed = failures - before + 1
            name = undo.path.removeprefix(UNDER_WAY_PATH + "/")
            whose = (name, engine.values.job_id, engine.program.workflow)
            if failed < attempts and not is_final(error, engine.program.non_retryable):
                retry = Retry(backoff_delay_ms(failed, spec.backoff, rng), Failure.of(error))
                logger.warning(
                    "compensation %r of job %r of workflow %r has failed, %d of %d times, and is tried again in %g s",
                    *whose, failed, attempts, retry.delay_ms / 1000, exc_info=error,
                )  # fmt: skip
                return retry
            logger.exception(
                "compensation %r of job %r of workflow %r has failed %d times and is given up", *whose, failed
            )
            given_up.append(f"compensation {name!r} has failed: {type(error).__name__}: {error}")
            await engine.record(undo.path, f"{failures}:{notes.write(given_up[-1])}")
        else:
            await engine.record(undo.path, f"{failures}:")
        before = failures
    return _with_notes(ending.outcome, given_up)


async def _call(engine: Engine, undo: Undo) -> None:
    function = engine.function_of(undo.path, undo.function)
    engine.undoing = True
    try:
        with engine.observe("compensation", undo.path.rpartition("/")[2], undo.path):
            if is_async(function):
                await function(*undo.args, **undo.kwargs)
            else:
                await engine.in_thread(partial(function, *undo.args, **undo.kwargs))
    finally:
        engine.undoing = False


def _with_notes(outcome: Failed | Cancelled, notes: list[str]) -> Failed | Cancelled:
    if not notes:
        return outcome
    text = "; ".join(reversed(notes))
    if isinstance(outcome, Cancelled):
        return Cancelled(f"{outcome.reason}; {text}" if outcome.reason else text)
    failure = outcome.failure
    return Failed(Failure(failure.type, f"{failure.message}; {text}", failure.traceback))
