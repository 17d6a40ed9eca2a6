"""pydocket: `add_many` for bulk; executions are dropped at once (`execution_ttl=0`)."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import contextlib
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import Any

import serving
from docket import Docket, Worker


class DocketPeer(serving.Peer):
    async def open(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._dockets: dict[str, Any] = {}

    async def _docket(self, queue: str) -> Any:
        if queue not in self._dockets:
            docket: Any = Docket(name=queue, url=self.url, execution_ttl=timedelta(0))

            async def noop(payload: str) -> None:
                self.ran(payload)

            docket.register(noop)
            self._dockets[queue] = await self._stack.enter_async_context(docket)
        return self._dockets[queue]

    async def add(self, queue: str, payload: str) -> None:
        await (await self._docket(queue)).add("noop")(payload)

    async def add_many(self, queue: str, payloads: Sequence[str], groups: int) -> None:
        if groups:
            raise serving.UnsupportedError("no groups in bulk")
        docket = await self._docket(queue)
        await docket.add_many([docket.call("noop")(payload) for payload in payloads])

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        async with (
            Worker(
                await self._docket(queue),
                concurrency=slots,
                minimum_check_interval=timedelta(milliseconds=1),
                scheduling_resolution=timedelta(milliseconds=250),
            ) as worker,
            serving.background(worker.run_forever()),
        ):
            yield


serving.serve(DocketPeer)
