"""BullMQ's Python port: `addBulk` for bulk; completed jobs are removed at once."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving
from bullmq import Queue, Worker


class BullMQ(serving.Peer):
    async def open(self) -> None:
        self._queues: dict[str, Any] = {}

    def _queue(self, name: str) -> Any:
        if name not in self._queues:
            self._queues[name] = Queue(name, {"connection": self.url})
        return self._queues[name]

    async def add(self, queue: str, payload: str) -> None:
        await self._queue(queue).add("job", {"p": payload}, {"removeOnComplete": True})

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups")
        await self._queue(queue).addBulk(
            [{"name": "job", "data": {"p": payload}, "opts": {"removeOnComplete": True}} for payload in payloads]
        )

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async def process(job: Any, token: str) -> None:
            del token
            self.ran(job.data["p"])

        worker: Any = Worker(queue, process, {"connection": self.url, "concurrency": slots, "autorun": False})
        async with serving.background(worker.run(), lambda: worker.close(force=True)):
            yield


serving.serve(BullMQ)
