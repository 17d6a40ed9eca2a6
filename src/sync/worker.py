from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from .portal import portal

if TYPE_CHECKING:
    from ..queue.options import Duration
    from ..workflow.worker import Worker


class SyncWorker:
    """A worker in the background of this process, for scripts and tests: it runs in the loop of all blocking calls.

    A process that does nothing but work is ``asyncio.run(ns.work())``.

    Example:
        >>> with sync(signup).worker(concurrency=5):
        ...     sync(signup).execute(Signup("ada@example.org"), timeout=30)
    """

    def __init__(self, worker: Worker) -> None:
        self._worker: Final = worker

    @property
    def id(self) -> str:
        """Its id, in Redis and in logs."""
        return self._worker.id

    def start(self) -> None:
        """Work in the background until ``stop``, or until the process ends."""
        portal.call(self._worker.start)
        portal.at_exit[self] = self._worker.stop

    def stop(self, *, grace: Duration | None = None) -> None:
        """Claim no more, let jobs run for ``grace``, end and hand back the rest."""
        portal.at_exit.pop(self, None)
        portal.call(lambda: self._worker.stop(grace=grace))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
