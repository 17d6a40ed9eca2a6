"""What tests of compensations write down."""

import asyncio
from typing import Any

from lanner import (
    Backoff,
    Workflow,
)
from support.jobs import PATIENCE
from support.waiting import wait_until

SOON = Backoff(first=0.01)


class Diary:
    """What was done and undone, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.gate = asyncio.Event()

    def write(self, line: str) -> None:
        self.lines.append(line)

    async def hold(self, line: str) -> None:
        self.lines.append(line)
        await self.gate.wait()

    async def says(self, *lines: str) -> None:
        await wait_until(lambda: self.lines == list(lines), PATIENCE)


async def is_in_state(workflow: Workflow[Any, Any], job_id: str, state: str) -> None:
    async def is_so() -> bool:
        return await workflow.get_job(job_id).state() == state

    await wait_until(is_so, PATIENCE)
