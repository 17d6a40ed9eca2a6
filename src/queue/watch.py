"""Watching a job: hearing of everything that happens to it, as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from ..errors import ClosedError

if TYPE_CHECKING:
    from .waiting import Waiters

ENDED: Final = frozenset({"completed", "failed", "cancelled", "missing", "replaced", "removed"})


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a watched job.

    Attributes:
        kind: started, progress, retrying, suspended, completed, failed, cancelled, or removed.
        text: With started how many attempts have failed before, with progress its value, with retrying and failed the
            failure, with suspended the instant (ms since the epoch, empty: none), with completed the result, with
            cancelled the reason.
    """

    kind: str
    text: str


class Watch:
    """Everything that happens to a job while this context is open, in order; it ends with the job."""

    def __init__(self, waiters: Waiters, workflow: str, job_id: str, run: str) -> None:
        self._waiters = waiters
        self._key = (workflow, job_id)
        self._run = run
        self._happenings: asyncio.Queue[Happening | None] = asyncio.Queue()
        self._ended = False
        self._pushed = 0
        self._progress = ""

    def __enter__(self) -> Self:
        self._waiters.enter_watch(self._key, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiters.leave_watch(self._key, self)

    def heard(self, run: str, happening: Happening) -> None:
        """Something was pushed."""
        if self._run in ("", run) and not self._ended:
            self._pushed += 1
            self._ended = happening.kind in ENDED
            if happening.kind == "progress":
                self._progress = happening.text
            self._happenings.put_nowait(happening)

    def close(self) -> None:
        """Nothing more will come."""
        self._happenings.put_nowait(None)

    async def look(self) -> None:
        """See where the job stands, at the beginning or after a gap; an end that was missed is heard of here."""
        pushed = self._pushed
        standing = await self._waiters.look_to_watch(*self._key, self._run)
        if standing.state in ENDED:
            self.heard(self._run or standing.run, Happening(standing.state, standing.text))
        elif standing.text not in ("", self._progress) and self._pushed == pushed:
            # what was pushed while this looked is later than what it saw
            self.heard(standing.run, Happening("progress", standing.text))

    async def happenings(self) -> AsyncGenerator[Happening]:
        """What happens, until the job has ended.

        Raises:
            ClosedError: The namespace was closed meanwhile.
        """
        while True:
            happening = await self._happenings.get()
            if happening is None:
                raise ClosedError(f"watching job {self._key[1]!r}: the namespace has been closed")
            yield happening
            if happening.kind in ENDED:
                return
