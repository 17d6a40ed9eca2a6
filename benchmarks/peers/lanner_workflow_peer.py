"""Lanner, as its users have it: workflows with typed input and output, results waited for, steps."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import redis.asyncio
import serving

from lanner import Context, RateLimit, WorkflowNamespace

NAMESPACE = "bench"


@dataclass
class Order:
    text: str


@dataclass
class Receipt:
    length: int


class LannerWorkflow(serving.Peer):
    async def open(self) -> None:
        self._namespaces: dict[tuple[int, int], WorkflowNamespace] = {}
        self._workflows: dict[tuple[str, int, int], Any] = {}

    def _namespace(self, cap: int = 0, limiters: int = 0) -> WorkflowNamespace:
        if (cap, limiters) not in self._namespaces:
            self._namespaces[cap, limiters] = WorkflowNamespace(
                NAMESPACE,
                redis=self.url,
                concurrency=cap or None,
                limiters={f"wide-{i}": RateLimit(100_000, 1.0) for i in range(limiters)},
            )
        return self._namespaces[cap, limiters]

    def _workflow(self, queue: str, cap: int = 0, limiters: int = 0) -> Any:
        """Its id says what it does: nothing, three steps, or a nap."""
        key = (queue, cap, limiters)
        if key not in self._workflows:
            kind = queue.partition("-")[0]
            function = {"steps": self._three_steps, "nap": self._nap}.get(kind, self._noop)
            self._workflows[key] = self._namespace(cap, limiters).create_workflow(queue, run=function, schema=Order)
        return self._workflows[key]

    async def _noop(self, ctx: Context[Order]) -> Receipt:
        self.ran(ctx.input.text)
        return Receipt(len(ctx.input.text))

    async def _three_steps(self, ctx: Context[Order]) -> Receipt:
        first = await ctx.step.do("first", _add_one, 0)
        second = await ctx.step.do("second", _add_one, first)
        third = await ctx.step.do("third", _add_one, second)
        self.ran(ctx.input.text)
        return Receipt(third)

    async def _nap(self, ctx: Context[Order]) -> Receipt:
        await asyncio.sleep(0.1)
        self.ran(ctx.input.text)
        return Receipt(0)

    async def add(self, queue: str, payload: str) -> None:
        await self._workflow(queue).run(Order(payload))

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("groups are measured at the queue's level")
        await self._workflow(queue).run_many([Order(payload) for payload in payloads])

    async def run(self, queue: str, payload: str) -> None:
        await self._workflow(queue).execute(Order(payload), timeout=10)

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async with self._workflow(queue).worker(concurrency=slots):
            yield

    async def call_work_within(self, *, queue: str, slots: int, jobs: int, cap: int, limiters: int) -> float:
        """Work through jobs under a cap of the namespace (seconds from the worker's start) or open limiters."""
        self._count, self._expected, self._delays = 0, jobs, None
        self._all_ran.clear()
        workflow = self._workflow(queue, cap, limiters)
        began = time.perf_counter()
        async with workflow.worker(concurrency=slots):
            ready = time.perf_counter()
            await self._all_ran.wait()
        return self._last - (began if cap else min(self._first, ready))

    async def call_fill_and_wait(self, *, queue: str, jobs: int, together: bool) -> None:
        """Add jobs and wait for every result, together or each by itself; ``waited`` says when all were there."""
        workflow, inputs, last = self._workflow(queue), [Order("x" * 100)] * jobs, ""
        if together:
            self._results = asyncio.ensure_future(workflow.execute_many(inputs))
        else:
            handles = await workflow.run_many(inputs)
            self._results, last = asyncio.gather(*(handle.wait() for handle in handles)), handles[-1].id
        self._results.add_done_callback(self._note_arrival)
        own = f"lanner:{{{NAMESPACE}}}:{queue}"
        async with redis.asyncio.from_url(self.url) as probe:
            while await probe.zcard(f"{own}:ready") < jobs:  # noqa: ASYNC110 - Redis tells nobody
                await asyncio.sleep(0.01)
            # waits are entered in order: when the last one has been, all have
            while last and not await probe.hexists(f"{own}:j:{last}", "waiters"):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)

    def _note_arrival(self, _: object) -> None:
        self._arrived = time.monotonic()

    async def call_waited(self) -> float:
        """When the last result arrived, by the clock that all processes of a machine share.

        This is asked when the worker has stopped, which takes longer than a result does to arrive.
        """
        await self._results
        return self._arrived

    async def call_work_from(self, *, queue: str, slots: int, jobs: int) -> float:
        """As ``work``; when the first job began, by the clock that all processes of a machine share."""
        took = await self.call_work(queue=queue, slots=slots, jobs=jobs)
        return time.monotonic() - (time.perf_counter() - self._last) - took

    async def call_listen_to_many(self, *, workflows: int, slots: int) -> None:
        """One worker of many workflows, idle."""
        namespace = WorkflowNamespace(NAMESPACE, redis=self.url)
        for i in range(workflows):
            namespace.create_workflow(f"idle-{i}", run=self._noop, schema=Order)
        self._listening = contextlib.AsyncExitStack()
        await self._listening.enter_async_context(namespace.worker(concurrency=slots))


async def _add_one(number: int) -> int:
    return number + 1


serving.serve(LannerWorkflow)
