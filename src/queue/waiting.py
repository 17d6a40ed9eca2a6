"""Waiting for jobs to end: pushed to one channel of this process, never polled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from ..errors import ClosedError
from . import keys
from .calling import Caller, Pauses
from .connection import Connector
from .grouping import Grouper
from .link import NotSentError, UnansweredError
from .looking import Looker, Waiter
from .scripts.ending import End, Role, unwait_jobs, watch_job
from .subscription import Subscription
from .watch import ENDED, Happening, Watch

logger: Final = logging.getLogger(__name__)
_said: Final = msgspec.msgpack.Decoder(list[str])

WATCHED: Final = "watch:"
MOST_OF_A_GROUP: Final = 100

Key = tuple[str, str]


class Waiters:
    """The jobs this process waits for or watches. One connection, however many they are."""

    def __init__(self, call: Caller, connector: Connector, process: str) -> None:
        self._call = call
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Key, list[Waiter]] = {}
        self._watching: dict[Key, list[Watch]] = {}
        self._looker = Looker(call, process)
        self._leaving = Grouper(self._leave_records, size=_size_of_role, most=MOST_OF_A_GROUP)
        self._subscription = Subscription(
            connector.connect, keys.waiting_channel(call.base, process), self._heard, self._look_at_all
        )
        self._background: set[asyncio.Task[None]] = set()
        self.closed = False

    async def ready(self, within: float | None = None) -> str:
        """Have the channel open, within so many seconds; its process id, for whoever publishes.

        Raises:
            ClosedError: The namespace was closed meanwhile.
            TimeoutError: It was not open in time.
        """
        if not self._subscription.is_open:
            async with asyncio.timeout(within):
                await self._subscription.ready()
        return self._process

    async def wait(
        self, workflow: str, job_id: str, run: str, *, within: float | None = None, first_look: float = 0.0
    ) -> End:
        """Wait until a life of a job (``run`` empty: any) has ended.

        ``within`` so many seconds, or, where that is longer, for a first look that may take ``first_look`` seconds.

        Raises:
            ClosedError: The namespace was closed meanwhile.
            TimeoutError: It has not ended in time.
        """
        began = self._loop.time()
        longest = None if within is None else max(within, first_look)
        await self.ready(longest)
        waiter = self.enter(workflow, job_id, run)
        try:
            if within is not None and longest is not None:
                waiter.time_out_at(self._loop, began + longest)
                if within < longest:
                    waiter.looked = partial(waiter.time_out_at, self._loop, began + within)
            # a look by itself cannot be cut short
            if within is None and self._looker.idle:
                await self._looker.look_alone(waiter)
            else:
                self._looker.look(waiter)
            return await waiter.future
        finally:
            self.leave(waiter)

    def enter(self, workflow: str, job_id: str, run: str, *, unsent: bool = False) -> Waiter:
        """Be told of an end from now on, until ``leave``; of a job that is ``unsent`` say ``sent`` once it is there."""
        key = (workflow, job_id)
        waiter = Waiter(key, run, self._loop.create_future(), unsent=unsent)
        waiters = self._waiting.get(key)
        if waiters is None:
            self._waiting[key] = [waiter]
        else:
            waiters.append(waiter)
        return waiter

    def sent(self, waiter: Waiter) -> None:
        """A waiter's job is there: who looks and does not find it knows that it has gone."""
        waiter.unsent = False
        if waiter.missed and not waiter.future.done():
            self._looker.look(waiter)

    async def look_first(self, waiters: Sequence[Waiter], within: float) -> None:
        """Look at the records of jobs that were there before, and wait for what is seen, so many seconds at most."""
        left, seen = len(waiters), self._loop.create_future()

        def one_was_seen(waiter: Waiter, _: object = None) -> None:
            nonlocal left
            if waiter.looked is not None:
                waiter.looked, left = None, left - 1
            if not left and not seen.done():
                seen.set_result(None)

        for waiter in waiters:
            waiter.looked = partial(one_was_seen, waiter)
            waiter.future.add_done_callback(partial(one_was_seen, waiter))
            self._looker.look(waiter)
        if waiters:
            await asyncio.wait([seen], timeout=within)

    def leave(self, waiter: Waiter) -> None:
        """A waiter hears of ends no more; the last of a job that goes on takes the process off its record."""
        if waiter.timer is not None:
            waiter.timer.cancel()
        waiters, future = self._waiting.get(waiter.key), waiter.future
        if waiters is None:
            return  # who has heard of the end was taken off with that
        if waiter in waiters:
            waiters.remove(waiter)
        # from now on it counts as done, also to a look that has not been sent
        given_up = future.cancel() or future.cancelled() or future.exception() is not None
        if not waiters and self._waiting.pop(waiter.key, None) is not None and given_up:
            self._unregister(waiter.key, "waiters")

    def watch(self, workflow: str, job_id: str, run: str) -> Watch:
        """Hear of everything that happens to a job; a context manager."""
        return Watch(self, workflow, job_id, run)

    def enter_watch(self, key: Key, watch: Watch) -> None:
        """Have a watch told of what happens."""
        self._watching.setdefault(key, []).append(watch)

    def leave_watch(self, key: Key, watch: Watch) -> None:
        """A watch hears no more; the last of a job takes the process off its record."""
        watches = self._watching.get(key, [])
        if watch in watches:
            watches.remove(watch)
        if not watches and self._watching.pop(key, None) is not None:
            self._unregister(key, "watchers")

    async def look_to_watch(self, workflow: str, job_id: str, run: str) -> End:
        """Register this process as one that watches; where the job stands (a state that has not ended: progress)."""
        await self.ready()
        pauses = Pauses()
        while True:
            try:
                look = await watch_job(self._call, workflow=workflow, id=job_id, run=run, process=self._process)
            except (NotSentError, UnansweredError):
                if self.closed:
                    raise ClosedError("the namespace has been closed") from None
                await asyncio.sleep(pauses.next())
                continue
            return End(look.state, look.run, look.text if look.state in ENDED else look.progress)

    async def aclose(self) -> None:
        """Close the subscription; every wait fails at once."""
        self.closed = True
        for waiters in self._waiting.values():
            for waiter in waiters:
                if not waiter.future.done():
                    waiter.future.set_exception(
                        ClosedError(f"waiting for job {waiter.key[1]!r}: the namespace has been closed")
                    )
                    # whoever awaits it is told all the same; of many that wait together the others are not awaited
                    waiter.future.exception()
        self._waiting.clear()
        for watches in self._watching.values():
            for watch in watches:
                watch.close()
        self._watching.clear()
        for task in self._background:
            task.cancel()
        await self._looker.aclose()
        await self._leaving.aclose()
        await self._subscription.aclose()

    def _unregister(self, key: Key, role: Role) -> None:
        self._leaving.submit((key, role)).add_done_callback(_tell_of_failure)

    async def _leave_records(self, roles: Sequence[tuple[Key, Role]]) -> Sequence[None]:
        # whoever has come since stays registered; whoever comes meanwhile may be taken off with this
        gone: list[tuple[str, str, Role]] = [
            (*key, role) for key, role in roles if key not in (self._waiting if role == "waiters" else self._watching)
        ]
        try:
            if gone:
                await unwait_jobs(self._call, process=self._process, jobs=gone)
        except (NotSentError, UnansweredError) as error:
            logger.debug("not done, and not needed: %s", error)
        finally:
            for workflow, job_id, _ in gone:
                self._look_again((workflow, job_id))
        return [None] * len(roles)

    def _heard(self, message: bytes) -> None:
        what, workflow, *said = _said.decode(message)
        parts = iter(said)
        if what.startswith(WATCHED):
            for job_id, text, run in zip(parts, parts, parts, strict=True):
                for watch in self._watching.get((workflow, job_id), ()):
                    watch.heard(run, Happening(what.removeprefix(WATCHED), text))
            return
        waiting, completed = self._waiting, what == "completed"
        for job_id, text, run in zip(parts, parts, parts, strict=True):
            waiters = waiting.pop((workflow, job_id), None)
            if waiters:
                waiter, end = waiters[0], End(what, run, text)
                # most are: what `_end` does for one who waits for this life's result
                if completed and waiter.run == run and len(waiters) == 1 and not waiter.future.done():
                    waiter.left = True
                    waiter.future.set_result(end)
                else:
                    self._end(waiters, end)

    def _end(self, waiters: Sequence[Waiter], end: End) -> None:
        """Those who wait for a job hear of an end: of the life that they wait for, or of another."""
        for waiter in waiters:
            if waiter.future.done() or (waiter.run and waiter.run != end.run):
                self._waiting.setdefault(waiter.key, []).append(waiter)
            elif end.state == "ended":  # too long to be pushed
                self._looker.look(waiter)
                self._waiting.setdefault(waiter.key, []).append(waiter)
            else:
                waiter.hear(end)

    def _look_at_all(self) -> None:
        """After a gap in the subscription: an end may have been published into it."""
        for key in {*self._waiting, *self._watching}:
            self._look_again(key)

    def _look_again(self, key: Key) -> None:
        for waiter in self._waiting.get(key, ()):
            self._looker.look(waiter)
        for watch in self._watching.get(key, ()):
            task = asyncio.create_task(watch.look(), name="lanner watching")
            self._background.add(task)
            task.add_done_callback(self._background.discard)


def _size_of_role(role: tuple[Key, Role]) -> int:
    return len(role[0][0]) + len(role[0][1])


def _tell_of_failure(left: asyncio.Future[None]) -> None:
    error = left.exception()
    if error is not None:
        logger.debug("not done, and not needed: %s", error)
