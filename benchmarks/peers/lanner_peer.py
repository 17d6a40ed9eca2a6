"""Lanner, at the level of its queues: text in, text out."""

import contextlib
import time
from collections.abc import AsyncGenerator, Sequence

import serving

from lanner.queue import Claim, Namespace, Queue
from lanner.queue.bulk import send_many
from lanner.queue.queue import Added

NAMESPACE = "bench"
TURNS, MEASURED = 10_000, 50


class Lanner(serving.Peer):
    async def open(self) -> None:
        self._namespace = Namespace(NAMESPACE, redis=self.url)
        self._queues: dict[str, Queue] = {}
        self._turns = TURNS

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = self._namespace.queue(name)
        return self._queues[name]

    async def add(self, queue: str, payload: str) -> None:
        await self._queue(queue).add(payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        own = self._queue(queue)
        if groups:
            prepared = [own.prepare(each, Added(group=f"g{i % groups}"), {}) for i, each in enumerate(payloads)]
            await send_many(own, prepared)
        else:
            await own.add_many(payloads)

    async def run(self, queue: str, payload: str) -> None:
        await self._queue(queue).execute(payload, Added(), {}, timeout=10)

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        """The queue's name says what its jobs do: nothing, or a little of Python."""

        async def noop(claim: Claim) -> None:
            self.ran(claim.data)

        async def spin(claim: Claim) -> None:
            for _ in range(self._turns):
                pass
            self.ran(claim.data)

        handler = spin if queue.startswith("busy-") else noop
        async with self._queue(queue).worker(handler, concurrency=slots):
            yield

    async def call_calibrate(self, *, seconds: float) -> int:
        """How often a loop turns in the time that a busy job is to take."""
        fastest = float("inf")
        for _ in range(MEASURED):
            began = time.perf_counter()
            for _ in range(TURNS):
                pass
            fastest = min(fastest, time.perf_counter() - began)
        return int(TURNS * seconds / fastest)

    async def call_be_busy(self, *, turns: int) -> None:
        """How often the loop of a busy job turns."""
        self._turns = turns

    async def call_fill_groups(self, *, queue: str, jobs: int, groups: int) -> None:
        """Add jobs to more groups than one batch has."""
        own = self._queue(queue)
        for start in range(0, jobs, serving.CHUNK):
            numbers = range(start, min(start + serving.CHUNK, jobs))
            await send_many(own, [own.prepare("x" * 100, Added(group=f"g{i % groups}"), {}) for i in numbers])


serving.serve(Lanner)
