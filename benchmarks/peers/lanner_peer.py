"""Lanner, at the level of its queues: text in, text out."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving

from lanner.queue import Namespace, RateLimit
from lanner.queue.queue import Added

NAMESPACE = "bench"


class Lanner(serving.Peer):
    async def open(self) -> None:
        self._namespaces: dict[tuple[int, int], Namespace] = {}

    def _namespace(self, concurrency: int = 0, limiters: int = 0) -> Namespace:
        key = (concurrency, limiters)
        if key not in self._namespaces:
            self._namespaces[key] = Namespace(
                NAMESPACE,
                redis=self.url,
                concurrency=concurrency or None,
                limiters={f"wide-{i}": RateLimit(100_000, 1.0) for i in range(limiters)} or None,
            )
        return self._namespaces[key]

    async def add(self, queue: str, payload: str) -> None:
        await self._namespace().queue(queue).add(payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        own = self._namespace().queue(queue)
        if groups:
            where = [Added(group=f"g{i % groups}") for i in range(len(payloads))]
            await own.send_many([own.prepare(each, at, {}) for each, at in zip(payloads, where, strict=True)])
        else:
            await own.add_many(payloads)

    async def run(self, queue: str, payload: str) -> None:
        own = self._namespace().queue(queue)
        await own.execute(payload, Added(), {}, timeout=10)

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async with self._work(self._namespace(), queue, slots):
            yield

    @contextlib.asynccontextmanager
    async def _work(self, namespace: Namespace, queue: str, slots: int) -> AsyncGenerator[None]:
        async def noop(claim: Any) -> None:
            self.ran(claim.data)

        async with namespace.queue(queue).worker(noop, concurrency=slots):
            yield

    async def call_fill_groups(self, *, queue: str, jobs: int, groups: int) -> None:
        """Add jobs to more groups than one batch has."""
        own = self._namespace().queue(queue)
        for start in range(0, jobs, serving.CHUNK):
            numbers = range(start, min(start + serving.CHUNK, jobs))
            await own.send_many([own.prepare("x" * 100, Added(group=f"g{i % groups}"), {}) for i in numbers])


serving.serve(Lanner)
