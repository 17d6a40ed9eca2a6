"""Items gather while a call is on the wire; the next call carries all of them."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ..errors import ClosedError
from .calling import ScriptError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class _Entry(NamedTuple, Generic[ItemT, ResultT]):
    item: ItemT
    future: asyncio.Future[ResultT]
    since: float


class Grouper(Generic[ItemT, ResultT]):
    """Sends items in groups, bounded by count and by bytes.

    There is one call at a time, or two: while Redis does one, what came of the other leads to new items.

    A group that the server refuses is sent one by one, so that one bad item fails alone.
    """

    def __init__(
        self,
        send: Callable[[Sequence[ItemT]], Awaitable[Sequence[ResultT]]],
        *,
        size: Callable[[ItemT], int],
        most: int = 200,
        most_bytes: int = 1 << 20,
        timeout: float | None = None,
        beside: int | None = None,
    ) -> None:
        """Send with ``send``, which gives one result an item; ``size`` is an item's weight in bytes.

        While a call is on the wire, ``beside`` gathered items are enough for a second one; None: there is none.

        An item that has no answer for ``timeout`` seconds, those before it included, fails with ``TimeoutError``.
        """
        self._send = send
        self._size = size
        self._most = most
        self._most_bytes = most_bytes
        self._timeout = timeout
        self._beside = beside
        self._pending: list[_Entry[ItemT, ResultT]] = []
        # what is on the wire, by the task that has sent it
        self._pumps: dict[asyncio.Task[None], list[_Entry[ItemT, ResultT]]] = {}
        # one timer for all: items time out in the order in which they came
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether nothing is on the wire or waits for its turn."""
        return not self._pumps

    def submit(self, item: ItemT) -> asyncio.Future[ResultT]:
        """Send an item with others; the future has its result, or raises what the call raised."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultT] = loop.create_future()
        self._pending.append(_Entry(item, future, time.monotonic()))
        pumps = len(self._pumps)
        if not pumps or (pumps == 1 and self._beside is not None and len(self._pending) == self._beside):
            self._start_pump(loop)
        if self._timer is None and self._timeout is not None:
            self._timer = loop.call_later(self._timeout, self._look, self._timeout)
        return future

    async def aclose(self) -> None:
        """Stop sending; what was not answered fails."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        pumps = tuple(self._pumps)
        for pump in pumps:
            pump.cancel()
        if pumps:
            await asyncio.wait(pumps)
        for pump in pumps:
            # one that was cancelled before its first step has never taken it
            self._end(pump)

    def _look(self, timeout: float) -> None:
        """Fail what has waited for too long."""
        now, left = time.monotonic(), timeout
        self._timer = None
        entries = [*itertools.chain(*self._pumps.values()), *self._pending]
        waiting = sorted((entry for entry in entries if not entry.future.done()), key=lambda entry: entry.since)
        for entry in waiting:
            left = entry.since + timeout - now
            if left > 0:
                self._timer = asyncio.get_running_loop().call_later(left, self._look, timeout)
                return
            entry.future.set_exception(TimeoutError())

    async def _run(self) -> None:
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - it is one
        try:
            if len(self._pumps) > 1:
                # calls that go out together are answered together, and would be together for ever
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            while self._pending and (len(self._pumps) == 1 or len(self._pending) >= (self._beside or 0)):
                self._pumps[own] = self._take()
                await self._deliver(self._pumps[own])
        finally:
            self._end(own)

    def _start_pump(self, loop: asyncio.AbstractEventLoop) -> None:
        # not by the loop's factory: it must not begin before it is known
        pump = asyncio.Task(self._run(), loop=loop, name="lanner grouper")
        self._pumps[pump] = []
        # somebody who cancels all tasks may do so before its first step, which it never takes then
        pump.add_done_callback(self._end)

    def _end(self, pump: asyncio.Task[None]) -> None:
        left = self._pumps.pop(pump, None)
        if left is None:
            return
        if not self._pumps and not self._closed and any(not entry.future.done() for entry in self._pending):
            self._start_pump(pump.get_loop())
        elif not self._pumps:
            left, self._pending = [*left, *self._pending], []
        _fail(left, ClosedError("closed before an answer came; it may have been done"))

    def _take(self) -> list[_Entry[ItemT, ResultT]]:
        size = count = 0
        for entry in self._pending[: self._most]:
            size += self._size(entry.item)
            if count and size > self._most_bytes:
                break
            count += 1
        group, self._pending = self._pending[:count], self._pending[count:]
        return [entry for entry in group if not entry.future.done()]

    async def _deliver(self, group: list[_Entry[ItemT, ResultT]]) -> None:
        if not group:
            return
        try:
            results = await self._send([entry.item for entry in group])
        except ScriptError as error:
            if len(group) == 1:
                _fail(group, error)
            for entry in group if len(group) > 1 else ():
                await self._deliver([entry])
        except Exception as error:  # noqa: BLE001 - it belongs to those who submitted
            _fail(group, error)
        else:
            for entry, result in zip(group, results, strict=True):
                if not entry.future.done():
                    entry.future.set_result(result)


def _fail(group: Iterable[_Entry[ItemT, ResultT]], error: Exception) -> None:
    for entry in group:
        if not entry.future.done():
            entry.future.set_exception(error)
