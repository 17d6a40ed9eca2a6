"""Looks at the records of jobs that somebody waits for: many in one call, and again until Redis has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .calling import Caller, Pauses
from .link import NotSentError, UnansweredError
from .scripts.ending import NOT_THERE, End, wait_jobs

MOST_AT_ONCE: Final = 100


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits for a life (``run`` empty: any) of a job, ``key`` its workflow and id.

    ``looked`` is called when its record was seen to go on, ``failed`` when it has ended without a result. The future is
    done when the waiter has heard of the end, or waits no longer. A job that is ``unsent`` cannot be missing: who has
    ``missed`` it looks again when it is known to be there. ``left``: it has heard, and need not leave any more.
    """

    key: tuple[str, str]
    run: str
    future: asyncio.Future[End]
    looked: Callable[[], object] | None = None
    failed: Callable[[Waiter, End], object] | None = None
    timer: asyncio.TimerHandle | None = None
    unsent: bool = False
    missed: bool = False
    left: bool = False

    def hear(self, end: End) -> None:
        """The job has ended, or is not there."""
        if self.unsent and end.state in NOT_THERE:
            self.missed = True
            return
        self.future.set_result(end)
        if self.failed is not None and end.state != "completed":
            self.failed(self, end)

    def time_out_at(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        """Have the future raise ``TimeoutError`` at an instant of the loop's clock; the last one said counts."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = loop.call_at(when, self._time_out)

    def _time_out(self) -> None:
        if not self.future.done():
            self.future.set_exception(TimeoutError())


class Looker:
    """Looks for waiters: what has ended resolves them, the ends of what goes on will be pushed to this process.

    Those who come while a call is on the wire go together in the next one.
    """

    def __init__(self, call: Caller, process: str) -> None:
        self._call = call
        self._process = process
        self._gathered: list[Waiter] = []
        self._looked_for: list[Waiter] = []
        self._task: asyncio.Task[None] | None = None
        self._alone = False
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether nobody is looked for."""
        return self._task is None and not self._alone

    async def look_alone(self, waiter: Waiter) -> None:
        """Look at once, when idle: a task of its own would cost time. Those who come meanwhile go together.

        Raises:
            ScriptError: The server refused to look.
        """
        self._alone = True
        try:
            await self._look_for([waiter])
        finally:
            self._alone = False

    def look(self, waiter: Waiter) -> None:
        """Look together with others. The waiter hears of errors too."""
        self._gathered.append(waiter)
        if self._task is None:
            self._start()

    async def aclose(self) -> None:
        """Look no more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _start(self) -> None:
        # not by the loop's factory: it must not end before it is known
        self._task = asyncio.Task(self._run(), name="lanner looker")
        self._task.add_done_callback(self._ended)

    async def _run(self) -> None:
        while self._gathered:
            group, self._gathered = self._gathered[:MOST_AT_ONCE], self._gathered[MOST_AT_ONCE:]
            self._looked_for = group
            await self._look_together(group)
        self._looked_for, self._task = [], None

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Somebody who cancels all tasks may have cancelled it, be it before its first step: look again."""
        if self._task is task and not self._closed:
            waiters, self._looked_for = [*self._looked_for, *self._gathered], []
            self._gathered = [waiter for waiter in waiters if not waiter.future.done()]
            self._task = None
            if self._gathered:
                self._start()

    async def _look_together(self, waiters: Sequence[Waiter]) -> None:
        try:
            await self._look_for(waiters)
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            # a record that cannot be read holds up nobody else
            if len(waiters) > 1:
                for waiter in waiters:
                    await self._look_together([waiter])
            elif not waiters[0].future.done():
                waiters[0].future.set_exception(error)

    async def _look_for(self, waiters: Sequence[Waiter]) -> None:
        pauses = Pauses()
        while waiters := [waiter for waiter in waiters if not waiter.future.done()]:
            jobs = [(*waiter.key, waiter.run) for waiter in waiters]
            try:
                ends = await wait_jobs(self._call, process=self._process, jobs=jobs)
            except (NotSentError, UnansweredError):
                await asyncio.sleep(pauses.next())
                continue
            for waiter, end in zip(waiters, ends, strict=False):
                if end is None and waiter.looked is not None and not waiter.future.done():
                    waiter.looked()
                elif end is not None and not waiter.future.done():
                    waiter.hear(end)
            waiters = waiters[len(ends) :]
