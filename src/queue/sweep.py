import logging
from collections.abc import Sequence
from typing import Final

from .calling import Caller
from .duty import Duty
from .scripts.claiming import sweep_claims
from .scripts.descending import ENDED_AT_ONCE, end_descendants

logger: Final = logging.getLogger(__name__)
LONGEST_INTERVAL_MS: Final = 30_000
RECOVERED_AT_ONCE: Final = 100
MOST_NAMED: Final = 10


class Sweep(Duty):
    """Return jobs whose lease has run out to their queue.

    Any number of workers may sweep; each job is returned once, and the fleet sweeps once an interval.
    """

    def __init__(self, call: Caller, lease_ms: int) -> None:
        super().__init__()
        self._call = call
        self._lease_ms = lease_ms
        # shorter than a lease, so that a living fleet is never mistaken for one whose Redis was away
        self._interval_ms = min(lease_ms // 2, LONGEST_INTERVAL_MS)

    async def once(self) -> float:
        """Sweep a batch."""
        swept = await sweep_claims(
            self._call, lease=self._lease_ms, interval=self._interval_ms, limit=RECOVERED_AT_ONCE
        )
        if swept.recovered:
            logger.warning("jobs of lost workers that go back to their queues: %s", _named(swept.recovered))
        if swept.stalled:
            logger.error("jobs that failed, as their workers were lost once too often: %s", _named(swept.stalled))
        while await end_descendants(self._call) == ENDED_AT_ONCE:
            continue
        return swept.again_ms / 1000


def _named(jobs: Sequence[str]) -> str:
    unnamed = len(jobs) - MOST_NAMED
    return f"{len(jobs)} ({', '.join(jobs[:MOST_NAMED])}{f' and {unnamed} more' if unnamed > 0 else ''})"
