"""SAQ: no bulk call, so a batch of calls at once; results are not stored (`ttl=-1`).

Waiting for a result polls every millisecond (`poll_interval`).
"""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import redis.asyncio
import serving
from saq import Queue, Worker
from saq.queue.redis import RedisQueue

AT_ONCE = 100


class Saq(serving.Peer):
    async def open(self) -> None:
        self._queues: dict[str, Any] = {}

    def _queue(self, name: str) -> Any:
        if name not in self._queues:
            client: Any = redis.asyncio.from_url(self.url)
            self._queues[name] = RedisQueue(client, name, max_concurrent_ops=AT_ONCE)
        return self._queues[name]

    async def add(self, queue: str, payload: str) -> None:
        await self._queue(queue).enqueue("noop", payload=payload, ttl=-1)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups")
        for start in range(0, len(payloads), AT_ONCE):
            await asyncio.gather(*(self.add(queue, payload) for payload in payloads[start : start + AT_ONCE]))

    async def run(self, queue: str, payload: str) -> None:
        await self._queue(queue).apply("noop", payload=payload, poll_interval=0.001)

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async def noop(ctx: Any, *, payload: str) -> None:
            del ctx
            self.ran(payload)

        client: Any = redis.asyncio.from_url(self.url)
        own: Queue = RedisQueue(client, queue, max_concurrent_ops=max(slots, 20))
        worker: Any = Worker(own, [("noop", noop)], concurrency=slots)
        Worker.SIGNALS = []
        async with serving.background(worker.start(), worker.stop):
            yield
        await own.disconnect()


serving.serve(Saq)
