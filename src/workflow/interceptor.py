from collections.abc import Callable
from typing import Any, Protocol


class Interceptor(Protocol):
    """Is told which steps of a run are replayed and which run, and may have another function run; for tests."""

    def replays(self, path: str) -> None:
        """A step gives what it gave in an earlier attempt."""
        ...

    def runs(self, path: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of a step, or of a compensation, is about to be called: which one is to be."""
        ...
