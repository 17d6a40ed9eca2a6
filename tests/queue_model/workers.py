"""The workers of the model: what they hold, and which work they know of; so that none is left that nobody looks for."""

from dataclasses import dataclass, field
from typing import Final

from lanner.queue.claim import Claim

from .claims import could_claim, fair_share, next_claim
from .clock import HALF
from .driver import Held
from .jobs import NEVER
from .model import Model

LANES: Final = 3  # calls of a worker that may be on their way at once


@dataclass
class Worker:
    """A worker.

    Attributes:
        slots: How many jobs it runs at once.
        serves: The workflows it claims from, the next in turn first.
        asked: How many jobs may come with the answers that it waits for, by their calls' lanes.
        claims: What it believes to hold.
        looking: Whether it is about to ask for work; else it is asleep until a marker, its timer, or news.
        timer: When it asks by itself.
    """

    id: str
    slots: int
    serves: list[str]
    numbers: list[int] = field(default_factory=lambda: list(range(LANES)))
    asked: dict[int, int] = field(default_factory=dict[int, int])
    claims: list[Claim] = field(default_factory=list[Claim])
    looking: bool = True
    timer: int = NEVER

    @property
    def free(self) -> int:
        """How many slots are free, and none that a call on its way may fill."""
        return self.slots - len(self.claims) - sum(self.asked.values())

    @property
    def may_call(self) -> bool:
        """Whether there is a call that it does not wait for."""
        return len(self.asked) < len(self.numbers)

    def next_number(self) -> int:
        """The number of its next call: in each lane there may be one on its way."""
        number = min(number for lane, number in enumerate(self.numbers) if lane not in self.asked) + LANES
        self.numbers[number % LANES] = number
        return number

    def let_go(self, claim: Claim) -> None:
        """It holds the claim no longer, so it has a slot to fill."""
        self.claims.remove(claim)
        self.looking = True


WATCHED: Final = "work that nobody looks for"


def check_heard(model: Model, held: Held, workers: list[Worker]) -> None:
    """What can be claimed has a marker, or a worker that is about to look; what becomes claimable, a timer."""
    for workflow in model.workflows:
        looking = any((worker.looking or worker.asked) and workflow in worker.serves for worker in workers)
        told = any(f"@ctl:{worker.id}" in held.lists and workflow in worker.serves for worker in workers)
        if looking or told or f"{workflow}:wake" in held.lists:
            continue
        assert not could_claim(model, workflow), f"{WATCHED}: {workflow} has some now"
        limits = model.limits[workflow]
        if model.limits[""].paused or limits.paused or f"{workflow}:clock" in held.lists:
            continue
        timer = min((worker.timer for worker in workers if workflow in worker.serves), default=NEVER)
        instants = [job.instant for job in model.having("delayed", workflow=workflow)]
        if fair_share(model, workflow) > 0 and limits.cap("concurrency") > len(
            model.having("active", workflow=workflow)
        ):
            instants.append(next_claim(model, workflow)[1])
        first = min(instants, default=NEVER)
        assert timer // HALF <= first // HALF, f"{WATCHED}: {workflow} will have some at {first}"
