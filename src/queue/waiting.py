"""Waiting for jobs to end: pushed to one channel of this process, never polled."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Final

from . import keys
from .calling import Caller, Pauses
from .connection import Connector
from .link import NotSentError, UnansweredError
from .scripts.ending import unwait_job, wait_job
from .subscription import Subscription

logger: Final = logging.getLogger(__name__)

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
    future: "asyncio.Future[End]"


class Waiters:
    """The jobs this process waits for. One connection, however many they are."""

    def __init__(self, call: Caller, connector: Connector, process: str) -> None:
        self._call = call
        self._process = process
        self._waiting: dict[tuple[str, str], list[_Waiter]] = {}
        self._subscription = Subscription(
            connector.connection, keys.waiting_channel(call.base, process), self._heard, self._look_again
        )
        self._background: set[asyncio.Task[None]] = set()
        self.closed = False

    async def ready(self) -> str:
        """Have the channel open; its process id, for whoever publishes."""
        await self._subscription.ready()
        return self._process

    async def wait(self, workflow: str, job_id: str, run: str) -> End:
        """Wait until a life of a job (``run`` empty: any) has ended."""
        with self.expect(workflow, job_id, run) as waiter:
            await self.ready()
            await self._look(workflow, job_id, waiter)
            return await waiter.future

    def expect(self, workflow: str, job_id: str, run: str) -> "Expectation":
        """Be told of an end from now on; a context manager that gives the waiter."""
        return Expectation(self, (workflow, job_id), run)

    async def aclose(self) -> None:
        """Close the subscription; every wait fails at once."""
        self.closed = True
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.future.cancel()
        self._waiting.clear()
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
            self._in_background(unwait_job(self._call, workflow=key[0], id=key[1], process=self._process))

    def _in_background(self, what: Coroutine[object, object, None]) -> None:
        async def quietly() -> None:
            try:
                await what
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
                look = await wait_job(
                    self._call, workflow=workflow, id=job_id, run=waiter.run, process=self._process
                )
            except (NotSentError, UnansweredError):
                await asyncio.sleep(pauses.next())
                continue
            if look.state in ENDED and not waiter.future.done():
                waiter.future.set_result(End(look.state, look.run, look.text))
            return

    def _heard(self, message: bytes) -> None:
        state, workflow, job_id, run, text = message.decode().split("\n", 4)
        for waiter in self._waiting.get((workflow, job_id), ()):
            if waiter.future.done() or waiter.run not in ("", run):
                continue
            if state == "ended":  # too long to be pushed
                self._in_background(self._look(workflow, job_id, waiter))
            else:
                waiter.future.set_result(End(state, run, text))

    def _look_again(self) -> None:
        """After a gap in the subscription: an end may have been published into it."""
        for (workflow, job_id), waiters in self._waiting.items():
            for waiter in waiters:
                self._in_background(self._look(workflow, job_id, waiter))


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
