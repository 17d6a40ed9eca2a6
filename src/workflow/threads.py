"""Threads for plain functions, as many as there are slots: the loop's own executor is shared with the whole process."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Done = Callable[[Any, BaseException | None], None]


class Work:
    """A plain function that is to run, or runs, in a thread."""

    __slots__ = ("done", "function", "loop", "started", "withdrawn")

    def __init__(self, function: Callable[[], Any], done: Done, loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self.done = done
        self.loop = loop
        self.started = False
        self.withdrawn = False

    def withdraw(self) -> bool:
        """Have it not run. False: it has started, and a thread cannot be ended."""
        if not self.started:
            self.withdrawn = True
        return self.withdrawn


class Threads:
    """At most ``limit`` threads, made when needed and kept; work beyond that waits its turn.

    Used from one event loop.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._idle: list[_Thread] = []
        self._queue: deque[Work] = deque()
        self._closed = False

    def submit(self, function: Callable[[], Any], done: Done) -> Work:
        """Run a function in a thread; ``done`` is then called in the loop with its value, or what it raised."""
        work = Work(function, done, asyncio.get_running_loop())
        if self._idle:
            self._idle.pop().give(work)
        elif self._count < self._limit:
            self._count += 1
            thread = _Thread(self)
            thread.start()
            thread.give(work)
        else:
            self._queue.append(work)
        return work

    def close(self) -> None:
        """End the idle threads now, and the others when their function returns."""
        self._closed = True
        for thread in self._idle:
            thread.give(None)
        self._idle.clear()

    def _next(self, thread: "_Thread") -> None:
        while self._queue:
            work = self._queue.popleft()
            if not work.withdrawn:
                thread.give(work)
                return
        if self._closed:
            self._count -= 1
            thread.give(None)
        else:
            self._idle.append(thread)

    def finished(self, thread: "_Thread", work: Work, value: object, error: BaseException | None) -> None:
        """In the loop: a thread has done its work and takes the next."""
        self._next(thread)
        work.done(value, error)


class _Thread(threading.Thread):
    def __init__(self, threads: Threads) -> None:
        # a process that was told to exit does not wait for a function that hangs: its job's lease runs out instead
        super().__init__(name="lanner plain function", daemon=True)
        self._threads = threads
        self._inbox: SimpleQueue[Work | None] = SimpleQueue()

    def give(self, work: Work | None) -> None:
        if work is not None:
            work.started = True
        self._inbox.put(work)

    def run(self) -> None:
        while (work := self._inbox.get()) is not None:
            value, error = None, None
            try:
                value = work.function()
            except BaseException as raised:  # noqa: BLE001 - handed to the one who waits, whatever it is
                error = raised
            try:
                work.loop.call_soon_threadsafe(self._threads.finished, self, work, value, error)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more
            del work, value, error
