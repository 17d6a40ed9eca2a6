"""A contestant's process: it gets calls as lines of JSON on its standard input, and answers each with a line.

Everything that is measured in the process is measured here, the same way for all.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

CHUNK = 1000
LONGEST = 1.0


class UnsupportedError(Exception):
    """The contestant has no such thing; the text says what it lacks."""


class Peer:
    """What a contestant can do. An adapter fills in how."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._count = self._expected = 0
        self._first = self._last = 0.0
        self._all_ran = asyncio.Event()
        self._delays: list[int] | None = None
        self._listening: contextlib.AsyncExitStack | None = None

    async def open(self) -> None:
        """Connect."""

    def worker(self, queue: str, slots: int) -> AbstractAsyncContextManager[None]:
        """A worker of a queue, at work while the context is open. Its jobs call ``ran`` with their payload."""
        raise NotImplementedError

    async def add(self, queue: str, payload: str) -> None:
        """Add a job."""
        raise NotImplementedError

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        """Add jobs in the fastest documented way; ``groups`` of them if it is not 0."""
        raise NotImplementedError

    async def run(self, queue: str, payload: str) -> None:
        """Add a job and wait for its result."""
        del queue, payload
        raise UnsupportedError("no waiting for a result")

    def ran(self, payload: str) -> None:
        """A job has run."""
        if self._delays is not None:
            self._delays.append(time.monotonic_ns() - int(payload))
            return
        self._count += 1
        if self._count == 1:
            self._first = time.perf_counter()
        if self._count == self._expected:
            self._last = time.perf_counter()
            self._all_ran.set()

    # ---- what can be called

    async def call_fill(self, *, queue: str, jobs: int, size: int = 100, groups: int = 0) -> float:
        """Add jobs in bulk; seconds."""
        payload = "x" * size
        began = time.perf_counter()
        for start in range(0, jobs, CHUNK):
            await self.add_many(queue, [payload] * min(CHUNK, jobs - start), groups)
        return time.perf_counter() - began

    async def call_add_one_by_one(self, *, queue: str, jobs: int) -> float:
        """Add jobs, each when the one before it is there; seconds."""
        payload = "x" * 100
        await self.add(queue, payload)  # opens what is opened when first used
        began = time.perf_counter()
        for _ in range(jobs):
            await self.add(queue, payload)
        return time.perf_counter() - began

    async def call_add_at_once(self, *, queue: str, jobs: int, width: int) -> float:
        """Add jobs, so many calls at a time; seconds."""
        payload, left = "x" * 100, jobs

        async def produce() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self.add(queue, payload)

        await self.add(queue, payload)
        began = time.perf_counter()
        await asyncio.gather(*(produce() for _ in range(width)))
        return time.perf_counter() - began

    async def call_work(self, *, queue: str, slots: int, jobs: int) -> float:
        """Work through jobs that wait; seconds from the first to the last of them."""
        self._count, self._expected, self._delays = 0, jobs, None
        self._all_ran.clear()
        async with self.worker(queue, slots):
            await self._all_ran.wait()
        return self._last - self._first

    async def call_listen(self, *, queue: str, slots: int, timing: bool = True) -> None:
        """Have a worker at work until ``hush``; what its jobs waited is kept."""
        self._delays = [] if timing else None
        self._count, self._expected = 0, -1
        self._listening = contextlib.AsyncExitStack()
        await self._listening.enter_async_context(self.worker(queue, slots))

    async def call_hush(self) -> list[int]:
        """Stop the worker; the nanoseconds from each job's adding to its start."""
        if self._listening is not None:
            await self._listening.aclose()
        delays, self._delays = self._delays or [], None
        return delays

    async def call_counted(self) -> int:
        """How many jobs have run, or been timed."""
        return len(self._delays) if self._delays is not None else self._count

    async def call_ping(self, *, queue: str, jobs: int, pause: float) -> None:
        """Add jobs that carry the time, with pauses."""
        for _ in range(jobs):
            await asyncio.sleep(pause)
            await self.add(queue, str(time.monotonic_ns()))

    async def call_round_trip(self, *, queue: str, jobs: int) -> list[int]:
        """Run jobs and wait for each, until there were enough or it took too long; nanoseconds of each."""
        took: list[int] = []
        deadline = time.monotonic() + LONGEST
        while len(took) < jobs and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
            began = time.monotonic_ns()
            await self.run(queue, str(began))
            took.append(time.monotonic_ns() - began)
        return took


@contextlib.asynccontextmanager
async def background(main: Any, stop: Callable[[], Any] | None = None) -> AsyncGenerator[None]:
    """Something that runs for ever, while the context is open."""
    task = asyncio.ensure_future(main)
    try:
        yield
    finally:
        if stop is not None:
            with contextlib.suppress(asyncio.CancelledError):  # of jobs that it ends
                await stop()
        if stop is None:
            task.cancel()
        await asyncio.wait({task}, timeout=0.5)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.5)


async def _serve(peer_class: type[Peer], output: Any) -> None:
    loop = asyncio.get_running_loop()
    peer = peer_class(sys.argv[1])
    await peer.open()
    print(json.dumps({"ok": "ready"}), file=output, flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        call = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"ok": await getattr(peer, "call_" + call.pop("call"))(**call)}
        except UnsupportedError as error:
            answer = {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in a contestant belongs into its row
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=output, flush=True)


def serve(peer_class: type[Peer]) -> NoReturn:
    """Serve until the input ends."""
    import uvloop  # noqa: PLC0415 - each peer runs on its own interpreter, which has it

    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a peer that prints does not garble the answers
    logging.disable(logging.WARNING)
    # as `lanner worker` does it for its process, and here for everybody
    gc.freeze()
    gc.set_threshold(10_000)
    uvloop.run(_serve(peer_class, output))
    output.close()
    os._exit(0)  # some peers leave threads behind
