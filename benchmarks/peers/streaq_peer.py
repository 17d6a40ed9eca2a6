"""streaQ: `enqueue_many` (a pipeline) for bulk; results are dropped at once (`ttl=0`)."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving
from streaq import Worker


class Streaq(serving.Peer):
    async def open(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._workers: dict[str, tuple[Any, Any]] = {}

    def _new(self, queue: str, slots: int) -> tuple[Any, Any]:
        worker: Any = Worker(redis_url=self.url, queue_name=queue, concurrency=slots, handle_signals=False)

        @worker.task(ttl=0)
        async def noop(payload: str) -> None:
            self.ran(payload)

        return worker, noop

    async def _producer(self, queue: str) -> tuple[Any, Any]:
        if queue not in self._workers:
            self._workers[queue] = self._new(queue, 1)
            await self._stack.enter_async_context(self._workers[queue][0])
        return self._workers[queue]

    async def add(self, queue: str, payload: str) -> None:
        _, noop = await self._producer(queue)
        await noop.enqueue(payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups")
        worker, noop = await self._producer(queue)
        await worker.enqueue_many([noop.enqueue(payload) for payload in payloads])

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        worker, _ = self._new(queue, slots)
        async with serving.background(worker.run_async()):
            yield


serving.serve(Streaq)
