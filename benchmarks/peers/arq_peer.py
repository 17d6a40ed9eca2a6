"""arq: polls every millisecond (`poll_delay`), stores no results (`keep_result=0`); no bulk call."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import serving
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

AT_ONCE = 100


class Arq(serving.Peer):
    async def open(self) -> None:
        self._settings = RedisSettings.from_dsn(self.url)
        self._pool: Any = await create_pool(self._settings)

    async def add(self, queue: str, payload: str) -> None:
        await self._pool.enqueue_job("noop", payload, _queue_name=queue)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups")
        for start in range(0, len(payloads), AT_ONCE):
            await asyncio.gather(*(self.add(queue, payload) for payload in payloads[start : start + AT_ONCE]))

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async def noop(ctx: Any, payload: str) -> None:
            del ctx
            self.ran(payload)

        worker: Any = Worker(
            [func(noop, name="noop", keep_result=0)],
            queue_name=queue,
            redis_settings=self._settings,
            max_jobs=slots,
            poll_delay=0.001,
            keep_result=0,
            handle_signals=False,
        )
        async with serving.background(worker.async_run(), worker.close):
            yield


serving.serve(Arq)
