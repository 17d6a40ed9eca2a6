"""Where a simulated worker can be lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .names import names_step

if TYPE_CHECKING:
    from .job import SimulatedJob

END: Final = ""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A moment at which the worker of a job is lost, once. The job is recovered, as it is when a lease has run out.

    Attributes:
        step: The step's name, or its path; empty for the end of an attempt, whose outcome is not committed any more.
        kept: Whether the step's checkpoint had been written. If not, the step runs again.
        job: The id of the job; None: whichever comes there first.
        write: Which of the step's checkpoints; a wait for an event with a timeout writes two.

    Example:
        >>> str(CrashPoint("charge", kept=False))
        'before the checkpoint of charge'
    """

    step: str
    kept: bool = True
    job: str | None = None
    write: int = 1

    def __str__(self) -> str:
        number = "" if self.write == 1 else f" (number {self.write})"
        if self.step == END:
            text = f"at the end of an attempt{number}"
        else:
            text = f"{'after' if self.kept else 'before'} the checkpoint of {self.step}{number}"
        return text if self.job is None else f"{self.job}: {text}"


def crash_points(job: SimulatedJob[Any]) -> list[CrashPoint]:
    """Every moment at which a worker can be lost, in a simulation that went well.

    That is, for each checkpoint that the simulation's jobs have written: before it, so that the step runs again, and
    after it; and the end of each attempt.

    Args:
        job: A job that has ended.

    Example:
        >>> first = await simulate(order, Order("ada"))
        >>> for point in crash_points(first):
        ...     again = await simulate(order, Order("ada"), crash=point)
        ...     assert again.output == first.output
    """
    points: list[CrashPoint] = []
    passed: Counter[tuple[str, str]] = Counter()
    for place in job.simulation.crashes.passed:
        passed[place] += 1
        owner, step = place
        before = CrashPoint(step, kept=False, job=owner, write=passed[place])
        points += [before] if step == END else [before, CrashPoint(step, job=owner, write=passed[place])]
    return points


class Crashes:
    """The crashes that a simulation is to have, and the moments for one that it has passed.

    Attributes:
        passed: These moments, in order: the job's id, and the path of the step (empty: the end of an attempt).
        planned: The crashes that are still to come.
    """

    def __init__(self) -> None:
        self.passed: list[tuple[str, str]] = []
        self.planned: list[CrashPoint] = []
        self._times: Counter[tuple[str, str]] = Counter()

    def plan(self, point: CrashPoint | str) -> None:
        """Have a crash happen."""
        self.planned.append(CrashPoint(point) if isinstance(point, str) else point)

    def passing(self, job: str, step: str) -> CrashPoint | None:
        """A job is about to write a checkpoint, or to end an attempt: the crash that happens now, if one does."""
        self.passed.append((job, step))
        self._times[job, step] += 1
        for point in self.planned:
            fits = point.step == step if END in (point.step, step) else names_step(point.step, step)
            if fits and point.job in (None, job) and point.write == self._times[job, step]:
                self.planned.remove(point)
                return point
        return None
