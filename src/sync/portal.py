"""The event loop that blocking calls are made in: one a process, in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from ..errors import ClosedError, RunningLoopError

T = TypeVar("T")
Make = Callable[[], Coroutine[Any, Any, T]]

EXIT_TIMEOUT: Final = 30.0
LOOKS_UP_AFTER: Final = 0.5
OVER: Final = "the process ends: nothing can be called any more"
_OVER: Final = object()


def _begin(loop: asyncio.AbstractEventLoop, make: Make[T], future: concurrent.futures.Future[T]) -> None:
    """Make a coroutine in the loop's own thread: where an interrupt of the caller leaves none that nobody awaits."""
    if future.cancelled():
        return
    task = loop.create_task(make())

    def ended(_: asyncio.Task[T]) -> None:
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            if task.cancelled():
                future.cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

    def given_up(_: concurrent.futures.Future[T]) -> None:
        if future.cancelled():
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the task with it
                loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(ended)
    future.add_done_callback(given_up)


class Portal:
    """A background event loop, started when it is first used.

    Attributes:
        at_exit: What is to be awaited before the loop ends.
    """

    def __init__(self) -> None:
        self.at_exit: dict[object, Callable[[], Coroutine[Any, Any, None]]] = {}
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._inherited: list[_Background] = []
        self._over = False

    def call(self, make: Make[T]) -> T:
        """Have the loop run a coroutine, and wait for what it gives. An exception of a signal ends both.

        Raises:
            RunningLoopError: An event loop runs in this thread, which would be blocked.
            ClosedError: The process ends.
        """
        _refuse_in_a_loop()
        background = self._running()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            background.begin(make, future)
            return _result_of(future)
        except concurrent.futures.CancelledError:
            raise ClosedError("the call was ended: the process ends, or the namespace was closed") from None
        except BaseException:
            future.cancel()
            raise
        finally:
            del future  # its exception's traceback refers to this frame

    def iterate(self, make: Callable[[], AsyncGenerator[T]]) -> Generator[T]:
        """What an asynchronous generator yields; to close this closes it."""
        items = make()
        # an interrupted call may still be inside the generator when that is to be closed
        turn = asyncio.Lock()

        async def following() -> Any:
            async with turn:
                return await anext(items, _OVER)

        async def close() -> None:
            async with turn:
                await items.aclose()

        try:
            while (item := self.call(following)) is not _OVER:
                yield item
        finally:
            with contextlib.suppress(ClosedError):
                self.call(close)

    def close(self) -> None:
        """End the loop, when what runs at its exit has been awaited; connections are closed with it."""
        with self._lock:
            self._over = True
            background, self._background = self._background, None
        if background is not None:
            background.stop()

    def forget(self) -> None:
        """In a forked child: the loop's thread has not come along. Its connections are the parent's, and stay open."""
        self._lock = threading.Lock()
        self.at_exit = {}
        if self._background is not None:
            # never collected: that would close, in the kernel, what the parent watches
            self._inherited.append(self._background)
            self._background = None

    def _running(self) -> _Background:
        with self._lock:
            if self._over:
                raise ClosedError(OVER)
            if self._background is None:
                self._background = _Background(self.at_exit)
            return self._background


class _Background:
    """A loop in a thread."""

    def __init__(self, at_exit: dict[object, Callable[[], Coroutine[Any, Any, None]]]) -> None:
        self._at_exit = at_exit
        self._stop = asyncio.Event()
        self._ready: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        # the interpreter waits for threads that are no daemons before it calls what is registered for its exit
        self._thread = threading.Thread(target=self._run, name="lanner sync", daemon=True)
        self._lock = threading.Lock()
        self._over = False
        self._thread.start()
        self._loop = self._ready.result()

    def begin(self, make: Make[T], future: concurrent.futures.Future[T]) -> None:
        """Have the loop run a coroutine, or end it with the loop: the future has an end either way.

        Raises:
            ClosedError: The loop ends.
        """
        with self._lock:
            if self._over:
                raise ClosedError(OVER)
            self._loop.call_soon_threadsafe(_begin, self._loop, make, future)

    def stop(self) -> None:
        """End the loop, and wait for that."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(EXIT_TIMEOUT)

    def _run(self) -> None:
        runner = asyncio.Runner()
        try:
            runner.run(self._until_stopped())
        finally:
            # where its executor was used, closing wants a thread, and Python 3.12 starts none when the process ends;
            # the executor's own have been joined by then, and the loop is closed all the same
            with contextlib.suppress(RuntimeError):
                runner.close()

    async def _until_stopped(self) -> None:
        self._ready.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        await asyncio.gather(*(ending() for ending in self._at_exit.values()), return_exceptions=True)
        with self._lock:
            self._over = True
        # what was taken on before that begins in this turn, and the runner cancels it with all that is left
        await asyncio.sleep(0)


def _result_of(future: concurrent.futures.Future[T]) -> T:
    """Wait, and look up now and then: nothing wakes who blocks just when Python has noted a signal."""
    while True:
        try:
            return future.result(LOOKS_UP_AFTER)
        except TimeoutError:
            # it may be the call's own
            if future.done():
                return future.result()


def _refuse_in_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunningLoopError(
        "lanner.sync blocks, and an event loop runs in this thread, which would stand still: await the same call of "
        "the workflow, namespace or job itself, or make this one in a thread, with asyncio.to_thread"
    )


portal: Final = Portal()
atexit.register(portal.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=portal.forget)
