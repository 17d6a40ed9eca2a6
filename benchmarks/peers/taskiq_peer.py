"""taskiq-redis: the stream broker (the one that acknowledges), no result backend; no bulk call."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving
from taskiq.receiver import Receiver
from taskiq_redis import RedisStreamBroker

AT_ONCE = 100


class Taskiq(serving.Peer):
    async def open(self) -> None:
        self._producers: dict[str, Any] = {}

    def _broker(self, queue: str) -> tuple[Any, Any]:
        broker: Any = RedisStreamBroker(self.url, queue_name=queue, consumer_id="0", xread_count=100)

        async def noop(payload: str) -> None:
            self.ran(payload)

        return broker, broker.register_task(noop, task_name="noop")

    async def _producer(self, queue: str) -> Any:
        if queue not in self._producers:
            broker, task = self._broker(queue)
            await broker.startup()
            self._producers[queue] = task
        return self._producers[queue]

    async def add(self, queue: str, payload: str) -> None:
        await (await self._producer(queue)).kiq(payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups")
        await self._producer(queue)
        for start in range(0, len(payloads), AT_ONCE):
            await asyncio.gather(*(self.add(queue, payload) for payload in payloads[start : start + AT_ONCE]))

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        broker, _ = self._broker(queue)
        await broker.startup()
        broker.is_worker_process = True
        enough = asyncio.Event()

        async def stop() -> None:
            enough.set()

        receiver = Receiver(broker, max_async_tasks=slots, max_prefetch=slots, run_startup=False)
        async with serving.background(receiver.listen(enough), stop):
            yield
        await broker.shutdown()


serving.serve(Taskiq)
