"""DBOS on a local PostgreSQL: three steps a workflow, a hundred workflows at once."""

# the peer has an environment of its own, and is not there when types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

import asyncio
import time
from typing import Any

import serving
from dbos import DBOS, DBOSConfig


class Dbos(serving.Peer):
    async def open(self) -> None:
        config: DBOSConfig = {"name": "bench", "system_database_url": self.url, "run_admin_server": False}
        DBOS(config=config)

        @DBOS.step()
        async def add_one(number: int) -> int:
            return number + 1

        @DBOS.workflow()
        async def three_steps(number: int) -> int:
            for _ in range(3):
                number = await add_one(number)
            return number

        DBOS.launch()
        self._run: Any = three_steps

    async def call_run_steps(self, *, workflows: int, width: int) -> float:
        """Run workflows, so many at once; seconds."""
        left = workflows

        async def some() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                handle = await DBOS.start_workflow_async(self._run, 0)
                await handle.get_result()

        began = time.perf_counter()
        await asyncio.gather(*(some() for _ in range(width)))
        return time.perf_counter() - began


serving.serve(Dbos)
