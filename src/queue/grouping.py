"""Items gather while a call is on the wire; the next call carries all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ..errors import ClosedError
from .calling import ScriptError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Grouper(Generic[ItemT, ResultT]):
    """Sends items in groups, one call at a time, bounded by count and by bytes.

    A group that the server refuses is sent one by one, so that one bad item fails alone.
    """

    def __init__(
        self,
        send: Callable[[Sequence[ItemT]], Awaitable[Sequence[ResultT]]],
        *,
        size: Callable[[ItemT], int],
        most: int = 200,
        most_bytes: int = 1 << 20,
    ) -> None:
        """Send with ``send``, which gives one result an item; ``size`` is an item's weight in bytes."""
        self._send = send
        self._size = size
        self._most = most
        self._most_bytes = most_bytes
        self._pending: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._pump: asyncio.Task[None] | None = None

    async def submit(self, item: ItemT) -> ResultT:
        """Send an item with others and give its result, or raise what the call raised."""
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name="lanner grouper")
        return await future

    async def aclose(self) -> None:
        """Stop sending; what was not answered fails."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])

    async def _run(self) -> None:
        group: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        try:
            while self._pending:
                group = self._take()
                await self._deliver(group)
        finally:
            self._pump = None
            _fail([*group, *self._pending], ClosedError("closed before an answer came; it may have been done"))
            self._pending = []

    def _take(self) -> list[tuple[ItemT, asyncio.Future[ResultT]]]:
        size = count = 0
        for item, _ in self._pending[: self._most]:
            size += self._size(item)
            if count and size > self._most_bytes:
                break
            count += 1
        group, self._pending = self._pending[:count], self._pending[count:]
        return [entry for entry in group if not entry[1].done()]

    async def _deliver(self, group: list[tuple[ItemT, asyncio.Future[ResultT]]]) -> None:
        if not group:
            return
        try:
            results = await self._send([item for item, _ in group])
        except ScriptError as error:
            if len(group) == 1:
                _fail(group, error)
            for entry in group if len(group) > 1 else ():
                await self._deliver([entry])
        except Exception as error:  # noqa: BLE001 - it belongs to those who submitted
            _fail(group, error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _fail(group: Sequence[tuple[ItemT, asyncio.Future[ResultT]]], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)
