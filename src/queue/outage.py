import logging
from collections.abc import Callable
from typing import Final

logger: Final = logging.getLogger(__name__)


class Outage:
    """Says once that Redis is gone, and once that it is back, whoever of a worker notices.

    Attributes:
        report: Called with what goes wrong with the worker itself: the first error of an outage, and any other.
    """

    def __init__(self, who: str, report: Callable[[BaseException], None]) -> None:
        self._who = who
        self._gone = False
        self.report = report

    def gone(self, error: BaseException) -> None:
        """A call failed for want of Redis."""
        if not self._gone:
            self._gone = True
            logger.warning("%s: Redis is gone (%s); what runs goes on, and everything is tried again", self._who, error)
            self.report(error)

    def back(self) -> None:
        """A call was answered."""
        if self._gone:
            self._gone = False
            logger.warning("%s: Redis is back", self._who)
