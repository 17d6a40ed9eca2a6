"""A worker's checkpoints on their way to Redis: grouped, and sent until they are answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from . import keys
from .calling import Caller, Pauses
from .claim import Claim
from .grouping import Grouper
from .link import NotSentError, UnansweredError
from .notes import LOG_LINES, check_progress, log_entry
from .scripts.descending import NewChild, Policy, start_children
from .scripts.recording import Checkpoint, append_log, record_steps, report_progress, take_event

T = TypeVar("T")
CHILDREN_AT_ONCE: Final = 100


class Recorder:
    """Writes what claims record. All of it is fenced by the claim's token, and harmless when sent twice."""

    def __init__(self, call: Caller) -> None:
        self._call = call
        self._steps: Grouper[Checkpoint, bool] = Grouper(self._send, size=lambda step: len(step.text) + len(step.path))

    async def record(self, claim: Claim, path: str, text: str) -> bool:
        """Store a checkpoint. False: the claim is lost, nothing was written."""
        return await self._steps.submit(Checkpoint(claim.workflow, claim.id, claim.token, path, text))

    async def take_event(self, claim: Claim, name: str, path: str, *, before: str, otherwise: str) -> str | bool | None:
        """Take an event as the checkpoint at a path. Its text; None: none was there; False: the claim is lost."""
        return await _persist(
            lambda: take_event(
                self._call,
                workflow=claim.workflow,
                id=claim.id,
                token=claim.token,
                name=name,
                path=path,
                before=before,
                otherwise=otherwise,
            )
        )

    async def start_children(
        self, claim: Claim, barrier: str, *, policy: Policy, most: int, children: Sequence[NewChild]
    ) -> bool:
        """Start children of a claim's job, 100 a call. False: the claim is lost."""
        for start in range(0, len(children), CHILDREN_AT_ONCE):
            started = await _persist(
                partial(
                    start_children,
                    self._call,
                    workflow=claim.workflow,
                    id=claim.id,
                    token=claim.token,
                    barrier=barrier,
                    policy=policy,
                    most=most,
                    children=children[start : start + CHILDREN_AT_ONCE],
                )
            )
            if not started:
                return False
        return True

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        """The checkpoints of a claim's job as they stand now."""
        key = keys.steps(self._call.base, claim.workflow, claim.id)
        return await _persist(lambda: self._call.read_hash(key))

    async def progress(self, claim: Claim, text: str) -> bool:
        """Say how far a job has come. False: the claim is lost.

        Raises:
            InvalidArgumentError: The text is too long.
        """
        check_progress(text)
        return await _persist(
            lambda: report_progress(self._call, workflow=claim.workflow, id=claim.id, token=claim.token, text=text)
        )

    async def log(self, claim: Claim, line: str) -> bool:
        """Write a line to a job's log. False: the claim is lost."""
        entry = log_entry(line)
        return await _persist(
            lambda: append_log(
                self._call,
                workflow=claim.workflow,
                id=claim.id,
                token=claim.token,
                entry=entry,
                most=LOG_LINES,
            )
        )

    async def aclose(self) -> None:
        """Send no more."""
        await self._steps.aclose()

    async def _send(self, steps: Sequence[Checkpoint]) -> list[bool]:
        return await _persist(lambda: record_steps(self._call, steps=steps))


async def _persist(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call until it is answered; whoever waits for it is cancelled when the claim is lost meanwhile."""
    pauses = Pauses()
    while True:
        try:
            return await call()
        except (NotSentError, UnansweredError):
            await asyncio.sleep(pauses.next())
