"""toro-queue: `PendingJobs` for bulk, a connection pool for the producer as its own factory makes it."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving
from toro import Queue, Worker


class Toro(serving.Peer):
    async def open(self) -> None:
        self._queues: dict[str, Any] = {}

    def _queue(self, name: str) -> Any:
        if name not in self._queues:
            self._queues[name] = Queue(name, url=self.url)
        return self._queues[name]

    async def add(self, queue: str, payload: str) -> None:
        await self._queue(queue).add("job", payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        pending = self._queue(queue).pending()
        for i, payload in enumerate(payloads):
            more = {"concurrency_key": f"g{i % groups}"} if groups else {}
            pending.add("job", payload, **more)
        await pending.flush()

    async def run(self, queue: str, payload: str) -> None:
        job = await self._queue(queue).add("job", payload)
        await job.result(timeout=10)

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async def process(job: Any) -> None:
            self.ran(job.data)

        worker = Worker(queue, process, url=self.url, concurrency=slots)
        async with serving.background(worker.run(), worker.stop):
            yield


serving.serve(Toro)
