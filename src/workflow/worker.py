from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

from ..errors import InvalidArgumentError
from ..queue.options import Duration
from ..queue.validation import refuse_unknown_options
from ..queue.worker import Worker as QueueWorker
from .attempts import Attempts
from .callbacks import Callbacks, OnError, OnFailed
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..queue.claim import Claim
    from ..queue.namespace import Namespace
    from .workflow import Workflow

logger: Final = logging.getLogger(__name__)


class WorkerSettings(TypedDict, total=False):
    """What a worker may be given besides its concurrency.

    Attributes:
        lease: How long a claim holds without renewal. A job whose worker was lost runs again after this and a sweep.
            Default 30 s.
        grace: How long a stopping worker lets jobs run before it hands them back. Default 10 s.
        max_blocked: How long the event loop may be blocked before the worker gives its jobs up. Default 5 min.
        warn_blocked: How long before a warning says so; None: never. Default 5 s.
        on_blocked: Called then, in another thread, with the seconds and the claims.
        safety: How long an idle worker relies on being woken. Default 5 s.
        on_failed: Called with the job and the error after each attempt that has failed here, for good or not: see
            ``job.state()``. It may be async; it must not block. What it raises is logged.
        on_error: Called so with what goes wrong with the worker itself: Redis is gone (once an outage), a call was
            refused, a background duty failed, a schedule cannot be fired, the worker breaks down.
    """

    lease: Duration
    grace: Duration
    max_blocked: Duration
    warn_blocked: Duration | None
    on_blocked: Callable[[float, list[Claim]], None] | None
    safety: Duration
    on_failed: OnFailed | None
    on_error: OnError | None


class Worker:
    """Runs workflows. Made by ``Workflow.worker`` and ``WorkflowNamespace.worker``.

    Example:
        >>> async with signup.worker(concurrency=100):
        ...     await signup.execute(Signup("ada@example.org"))
    """

    def __init__(
        self,
        namespace: Namespace,
        workflows: Sequence[Workflow[Any, Any]],
        concurrency: int,
        settings: WorkerSettings,
    ) -> None:
        refuse_unknown_options(settings, WorkerSettings.__optional_keys__, ("concurrency",))
        if not workflows:
            raise InvalidArgumentError(f"namespace {namespace.id!r} has no workflows to work on: create one first")
        self._callbacks = Callbacks(settings.get("on_failed"), settings.get("on_error"))
        fires = workflows[0].namespace.telemetry.fire
        others: dict[str, Any] = {**settings, "on_error": self._callbacks.error, "fires": fires}
        others.pop("on_failed", None)
        self._threads = Threads(concurrency)
        self._attempts = {workflow.id: Attempts(workflow, self._threads, self._callbacks) for workflow in workflows}
        self._worker = QueueWorker(
            namespace,
            self._attempts,
            concurrency=concurrency,
            limits={workflow.id: workflow.queue.declared for workflow in workflows},
            **others,
        )

    @property
    def id(self) -> str:
        """Its id, in Redis and in logs."""
        return self._worker.id

    async def start(self) -> None:
        """Work in the background until ``stop``.

        Raises:
            RedisUnavailableError: Redis did not answer in time.
        """
        await self._worker.start(self._prepare)

    async def stop(self, *, grace: Duration | None = None) -> None:
        """Claim no more, let jobs run for ``grace``, end and hand back the rest. Called again it hurries."""
        await self._worker.stop(grace=grace)
        await self._callbacks.aclose()
        self._threads.close()

    async def run(self) -> None:
        """Work until stopped, or signalled: SIGTERM and SIGINT stop as ``stop`` does, and a second one hurries.

        Cancelling it hands the jobs back at once.
        """
        with _signals(self._worker):
            try:
                await self._worker.run(self._prepare)
            finally:
                await self._callbacks.aclose()
                self._threads.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _prepare(self) -> None:
        for attempts in self._attempts.values():
            attempts.prepare(self._worker.recorder)


@contextlib.contextmanager
def _signals(worker: QueueWorker) -> Generator[None]:
    """Have signals stop the worker, where this thread may handle any."""
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()

    def stop(number: signal.Signals) -> None:
        logger.info("%s: %s", number.name, "no more grace" if stopping else "stopping, once more to hurry")
        stopping.add(asyncio.create_task(worker.stop(), name="lanner stop"))

    handled: list[signal.Signals] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(number, stop, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
