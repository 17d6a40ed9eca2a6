"""What a worker calls when something has failed. Whatever such a callback does costs the worker nothing."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..queue.validation import check_function
from ..queue.worker import CLEAN_UP

if TYPE_CHECKING:
    from .job import Job

logger: Final = logging.getLogger(__name__)

OnFailed: TypeAlias = "Callable[[Job[Any], BaseException], object]"
OnError: TypeAlias = Callable[[BaseException], object]


class Callbacks:
    """Calls a worker's callbacks, plain or async ones; those that raise are logged."""

    def __init__(self, on_failed: OnFailed | None, on_error: OnError | None) -> None:
        """Call these.

        Raises:
            InvalidArgumentError: One is no function.
        """
        check_function(on_failed, "on_failed")
        check_function(on_error, "on_error")
        self._on_failed = on_failed
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def wants_failures(self) -> bool:
        """Whether anybody is to hear of attempts that have failed."""
        return self._on_failed is not None

    def failed(self, job: Job[Any], error: BaseException) -> None:
        """An attempt at a job has failed."""
        if self._on_failed is not None:
            self._call("on_failed", self._on_failed, job, error)

    def error(self, error: BaseException) -> None:
        """Something of the worker itself has failed."""
        if self._on_error is not None:
            self._call("on_error", self._on_error, error)

    async def aclose(self) -> None:
        """Let the callbacks that still run end, for a while; then cancel them."""
        # a callback may be what stops the worker
        if running := self._tasks - {asyncio.current_task()}:
            _, late = await asyncio.wait(running, timeout=CLEAN_UP)
            for task in late:
                logger.warning("a callback still runs as its worker stops, and is cancelled")
                task.cancel()

    def _call(self, name: str, callback: Callable[..., object], *arguments: object) -> None:
        try:
            answer = callback(*arguments)
        except Exception:
            logger.exception("%s raised; the worker goes on", name)
            return
        if inspect.isawaitable(answer):
            task = asyncio.create_task(_finished(name, answer), name=f"lanner {name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _finished(name: str, answer: Awaitable[object]) -> None:
    try:
        await answer
    except Exception:
        logger.exception("%s raised; the worker goes on", name)
