"""The model's time, and where its instants lie on the server's clock."""

from collections.abc import Callable

UNIT = 600_000  # a duration in the model is so many of these, so that the run's own time never decides anything
HALF = UNIT // 2


class Clock:
    """Counts what has passed by decree, and the steps: two of them never share a millisecond of the server.

    An instant is the time passed, plus a duration (both of whole or half units), plus the number of the step at which
    the duration began.
    """

    def __init__(self, server_time: Callable[[], int]) -> None:
        self._server_time = server_time
        self._passed = 0
        self._steps: list[tuple[int, int]] = []
        self.begin()

    @property
    def now(self) -> int:
        """The model's instant of this step."""
        return self._passed + len(self._steps) - 1

    def begin(self) -> None:
        """A step begins: in a millisecond in which none was before."""
        last = self._steps[-1][1] if self._steps else 0
        while (began := self._server_time()) <= last:
            pass
        self._steps.append((began, began))

    def end(self, server_now: int) -> None:
        """The step has ended."""
        self._steps[-1] = (self._steps[-1][0], server_now)

    def pass_time(self, ms: int) -> None:
        """So much time has passed."""
        self._passed += ms

    def began(self) -> int:
        """The server's time when the step began."""
        return self._steps[-1][0]

    def on_server(self, instant: int) -> tuple[int, int]:
        """Between which milliseconds of the server's clock an instant of the model lies."""
        step = instant % HALF
        earliest, latest = self._steps[step]
        return earliest + instant - step - self._passed, latest + instant - step - self._passed
