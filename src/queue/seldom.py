"""What is worth a line in the log, and not one each time."""

import time
from typing import Final

# seconds
EVERY: Final = 600.0


class Seldom:
    """Has each of several things said once in ten minutes at most."""

    def __init__(self) -> None:
        self._again: dict[str, float] = {}

    def may_say(self, what: str) -> bool:
        """Whether to say it now; who asks says it."""
        now = time.monotonic()
        if now < self._again.get(what, now):
            return False
        self._again[what] = now + EVERY
        return True
