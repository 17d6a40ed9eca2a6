import asyncio

from lanner.queue.claim import EndReason


class Unstoppable:
    """What runs a claim and cannot be ended, as a thread, before an event is set."""

    def __init__(self, ends: asyncio.Event) -> None:
        self._ends = ends

    def end(self, reason: EndReason) -> None:
        """Go on."""

    def event_arrived(self, name: str) -> None:
        """Go on."""

    def count_threads(self) -> int:
        """One, while it runs."""
        return int(not self._ends.is_set())
