"""Waiting for jobs to end: pushed to one channel of this process, never polled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import msgspec

from ..errors import ClosedError
from . import keys
from .calling import Caller, Pauses
from .connection import Connector
from .link import NotSentError, UnansweredError
from .scripts.ending import Role, unwait_job, wait_job, watch_job
from .subscription import Subscription

logger: Final = logging.getLogger(__name__)
_said: Final = msgspec.msgpack.Decoder(list[str])

WATCHED: Final = "watch:"
PARTS: Final = 5
ENDED: Final = frozenset({"completed", "failed", "cancelled", "missing", "replaced", "removed"})


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended (or that it is ``missing``, ``replaced`` or ``removed``), and the text of it."""

    state: str
    run: str
    text: str


@dataclass(slots=True, eq=False)
class _Waiter:
    run: str
    future: asyncio.Future[End]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a watched job.

    Attributes:
        kind: started, progress, retrying, suspended, completed, failed, cancelled, or removed.
        text: With started how many attempts have failed before, with progress its value, with retrying and failed the
            failure, with suspended the instant (ms since the epoch, empty: none), with completed the result, with
            cancelled the reason.
    """

    kind: str
    text: str


class Waiters:
    """The jobs this process waits for or watches. One connection, however many they are."""

    def __init__(self, call: Caller, connector: Connector, process: str) -> None:
        self._call = call
        self._process = process
        self._waiting: dict[tuple[str, str], list[_Waiter]] = {}
        self._watching: dict[tuple[str, str], list[Watch]] = {}
        self._subscription = Subscription(
            connector.connection, keys.waiting_channel(call.base, process), self._heard, self._look_at_all
        )
        self._background: set[asyncio.Task[None]] = set()
        self.closed = False

    async def ready(self) -> str:
        """Have the channel open; its process id, for whoever publishes."""
        await self._subscription.ready()
        return self._process

    async def wait(self, workflow: str, job_id: str, run: str, looked: Callable[[], None]) -> End:
        """Wait until a life of a job (``run`` empty: any) has ended. ``looked`` is called after a first look."""
        with self.expect(workflow, job_id, run) as waiter:
            await self.ready()
            await self._look(workflow, job_id, waiter)
            looked()
            return await waiter.future

    def expect(self, workflow: str, job_id: str, run: str) -> Expectation:
        """Be told of an end from now on; a context manager that gives the waiter."""
        return Expectation(self, (workflow, job_id), run)

    def watch(self, workflow: str, job_id: str, run: str) -> Watch:
        """Hear of everything that happens to a job; a context manager."""
        return Watch(self, workflow, job_id, run)

    def enter_watch(self, key: tuple[str, str], watch: Watch) -> None:
        """Have a watch told of what happens."""
        self._watching.setdefault(key, []).append(watch)

    def leave_watch(self, key: tuple[str, str], watch: Watch) -> None:
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
                waiter.future.cancel()
        self._waiting.clear()
        for watches in self._watching.values():
            for watch in watches:
                watch.close()
        self._watching.clear()
        for task in self._background:
            task.cancel()
        await self._subscription.aclose()

    def enter(self, key: tuple[str, str], waiter: _Waiter) -> None:
        """Have a waiter told of ends."""
        self._waiting.setdefault(key, []).append(waiter)

    def leave(self, key: tuple[str, str], waiter: _Waiter) -> None:
        """A waiter hears of ends no more; the last of a job that goes on takes the process off its record."""
        waiters = self._waiting.get(key, [])
        if waiter in waiters:
            waiters.remove(waiter)
        given_up = waiter.future.cancelled() or not waiter.future.done()
        if not waiters and self._waiting.pop(key, None) is not None and given_up:
            self._unregister(key, "waiters")

    def _unregister(self, key: tuple[str, str], role: Role) -> None:
        async def unregister() -> None:
            # whoever has come since stays registered; whoever comes meanwhile may be taken off with this
            if key in (self._waiting if role == "waiters" else self._watching):
                return
            try:
                await unwait_job(self._call, workflow=key[0], id=key[1], role=role, process=self._process)
            finally:
                self._look_again(key)

        self._in_background(unregister)

    def _in_background(self, what: Callable[[], Awaitable[None]]) -> None:
        async def quietly() -> None:
            try:
                await what()
            except (NotSentError, UnansweredError) as error:
                logger.debug("not done, and not needed: %s", error)

        task = asyncio.create_task(quietly(), name="lanner waiting")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _look(self, workflow: str, job_id: str, waiter: _Waiter) -> None:
        """Look at the record until Redis has answered; what has ended resolves the waiter."""
        pauses = Pauses()
        while not waiter.future.done():
            try:
                look = await wait_job(self._call, workflow=workflow, id=job_id, run=waiter.run, process=self._process)
            except (NotSentError, UnansweredError):
                await asyncio.sleep(pauses.next())
                continue
            if look.state in ENDED and not waiter.future.done():
                waiter.future.set_result(End(look.state, look.run, look.text))
            return

    def _heard(self, message: bytes) -> None:
        said = _said.decode(message)
        for i in range(0, len(said), PARTS):
            self._heard_of(*said[i : i + PARTS])

    def _heard_of(self, state: str, workflow: str, job_id: str, run: str, text: str) -> None:
        if state.startswith(WATCHED):
            for watch in self._watching.get((workflow, job_id), ()):
                watch.heard(run, Happening(state.removeprefix(WATCHED), text))
            return
        for waiter in self._waiting.get((workflow, job_id), ()):
            if waiter.future.done() or waiter.run not in ("", run):
                continue
            if state == "ended":  # too long to be pushed
                self._in_background(partial(self._look, workflow, job_id, waiter))
            else:
                waiter.future.set_result(End(state, run, text))

    def _look_at_all(self) -> None:
        """After a gap in the subscription: an end may have been published into it."""
        for key in {*self._waiting, *self._watching}:
            self._look_again(key)

    def _look_again(self, key: tuple[str, str]) -> None:
        for waiter in self._waiting.get(key, ()):
            self._in_background(partial(self._look, *key, waiter))
        for watch in self._watching.get(key, ()):
            self._in_background(watch.look)


class Expectation:
    """Somebody waits for a job while this context is open."""

    def __init__(self, waiters: Waiters, key: tuple[str, str], run: str) -> None:
        self._waiters = waiters
        self._key = key
        self._waiter = _Waiter(run, asyncio.get_running_loop().create_future())

    def __enter__(self) -> _Waiter:
        self._waiters.enter(self._key, self._waiter)
        return self._waiter

    def __exit__(self, *_: object) -> None:
        self._waiters.leave(self._key, self._waiter)


class Watch:
    """Everything that happens to a job while this context is open, in order; it ends with the job."""

    def __init__(self, waiters: Waiters, workflow: str, job_id: str, run: str) -> None:
        self._waiters = waiters
        self._key = (workflow, job_id)
        self._run = run
        self._happenings: asyncio.Queue[Happening | None] = asyncio.Queue()
        self._ended = False
        self._pushed = 0
        self._progress = ""

    def __enter__(self) -> Self:
        self._waiters.enter_watch(self._key, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiters.leave_watch(self._key, self)

    def heard(self, run: str, happening: Happening) -> None:
        """Something was pushed."""
        if self._run in ("", run) and not self._ended:
            self._pushed += 1
            self._ended = happening.kind in ENDED
            if happening.kind == "progress":
                self._progress = happening.text
            self._happenings.put_nowait(happening)

    def close(self) -> None:
        """Nothing more will come."""
        self._happenings.put_nowait(None)

    async def look(self) -> None:
        """See where the job stands, at the beginning or after a gap; an end that was missed is heard of here."""
        pushed = self._pushed
        standing = await self._waiters.look_to_watch(*self._key, self._run)
        if standing.state in ENDED:
            self.heard(self._run or standing.run, Happening(standing.state, standing.text))
        elif standing.text not in ("", self._progress) and self._pushed == pushed:
            # what was pushed while this looked is later than what it saw
            self.heard(standing.run, Happening("progress", standing.text))

    async def happenings(self) -> AsyncGenerator[Happening]:
        """What happens, until the job has ended.

        Raises:
            ClosedError: The namespace was closed meanwhile.
        """
        while True:
            happening = await self._happenings.get()
            if happening is None:
                raise ClosedError(f"watching job {self._key[1]!r}: the namespace has been closed")
            yield happening
            if happening.kind in ENDED:
                return
