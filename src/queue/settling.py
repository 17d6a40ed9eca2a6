"""The worker's heart: commits outcomes in groups, and claims jobs for the slots they free, in one call at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .calling import Caller, Pauses, ScriptError
from .claim import Claim
from .link import NotSentError, UnansweredError
from .outage import Outage
from .outcome import Failed, Failure, Outcome
from .running import Runs
from .scripts.claiming import Settlement, pass_wake, settle

logger: Final = logging.getLogger(__name__)
CLAIMED_AT_ONCE: Final = 64
COMMITTED_AT_ONCE: Final = 64
COMMITTED_BYTES: Final = 1 << 20


class Settler:
    """While one call is on the wire, outcomes gather; the next carries all of them.

    Attributes:
        idle: Called when there is nothing to claim for slots that are free.
    """

    def __init__(
        self,
        call: Caller,
        *,
        runs: Runs,
        worker: str,
        lease_ms: int,
        concurrency: int,
        ceilings: Mapping[str, int | None],
        workflows: list[str],
        outage: Outage,
    ) -> None:
        self._call = call
        self._runs = runs
        self._worker = worker
        self._lease_ms = lease_ms
        self._concurrency = concurrency
        self._ceilings = ceilings
        self._workflows = workflows
        self._outage = outage
        self._number = 0
        self._signal = asyncio.Event()
        self._signal.set()
        self._looking = True
        # whether what is due is to be made runnable, be there a slot for it or not
        self._due = False
        self._closed = False
        self._in_flight = False
        self._drained = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.idle: Callable[[], None] = lambda: None
        runs.changed = self._changed

    def look(self) -> None:
        """There may be work, or an instant to wait for."""
        self._looking = self._due = True
        self._signal.set()

    def has_slot(self, workflow: str) -> bool:
        """Whether a job of a workflow could be run now."""
        return not self._closed and self._free() > 0 and self._room_of(workflow) > 0

    def close(self) -> None:
        """Claim no more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._signal.set()

    async def drained(self) -> None:
        """Wait until every outcome has been committed, and what was claimed meanwhile handed back."""
        while self._runs.outbox or self._in_flight:
            self._drained.clear()
            self._signal.set()
            await self._drained.wait()

    async def pass_on(self) -> None:
        """Have somebody else woken for what this worker may have been woken for."""
        for workflow in self._workflows:
            await pass_wake(self._call, workflow=workflow, instants=True)

    async def work(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._signal.wait()
            self._signal.clear()
            while True:
                # runs that end in this turn of the loop come along
                await asyncio.sleep(0)
                free = self._free()
                outcomes = self._take()
                if not outcomes and (self._closed or not (self._due or (self._looking and free))):
                    break
                await self._settle_once(outcomes)
            if not self._runs.outbox:
                self._drained.set()

    def _changed(self) -> None:
        self._looking = True
        self._signal.set()

    def _free(self) -> int:
        return self._concurrency - len(self._runs) - len(self._runs.outbox)

    def _take(self) -> list[tuple[Claim, Outcome]]:
        size = count = 0
        outbox = self._runs.outbox
        for _, outcome in outbox[:COMMITTED_AT_ONCE]:
            size += len(getattr(outcome, "result", ""))
            if count and size > COMMITTED_BYTES:
                break
            count += 1
        taken, outbox[:] = outbox[:count], outbox[count:]
        return taken

    async def _settle_once(self, outcomes: list[tuple[Claim, Outcome]]) -> None:
        total = 0 if self._closed else min(max(self._free(), 0), CLAIMED_AT_ONCE)
        self._looking = self._due = False
        self._in_flight = True
        try:
            settlement = await self._persist(outcomes, total)
        finally:
            self._in_flight = False
        if settlement is None:
            return
        for (claim, outcome), applied in zip(outcomes, settlement.applied, strict=True):
            self._runs.answered(claim)
            if applied:
                if claim.settled is not None:
                    claim.settled(outcome)
            else:
                logger.warning(
                    "job %r of workflow %r was taken over before its end (%s) could be committed",
                    claim.id,
                    claim.workflow,
                    type(outcome).__name__.lower(),
                )
        for claim in settlement.claims:
            if self._closed:
                self._runs.hand_back(claim)
            else:
                self._runs.begin(claim, unread=claim in settlement.unread)
        if not self._closed:
            self._plan(settlement, total)

    def _plan(self, settlement: Settlement, total: int) -> None:
        """When to look again: at once, at an instant, or when woken."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if settlement.again_ms == 0:
            self.look()
            return
        if settlement.again_ms is not None:
            # a timer's instant is rounded down to a millisecond by Redis' clock: never look too early
            self._timer = asyncio.get_running_loop().call_later((settlement.again_ms + 1) / 1000, self.look)
        if len(settlement.claims) >= total:
            self._looking = True
        else:
            self.idle()

    async def _persist(self, outcomes: Sequence[tuple[Claim, Outcome]], total: int) -> Settlement | None:
        """Settle until it is answered, however long Redis is away."""
        self._number += 1
        number, pauses, wants = self._number, Pauses(), self._wants(total)
        self._runs.expect(f"{self._worker}:{number}")
        while True:
            try:
                settlement = await settle(
                    self._call,
                    worker=self._worker,
                    number=number,
                    lease=self._lease_ms,
                    total=total,
                    outcomes=outcomes,
                    wants=wants,
                )
            except (NotSentError, UnansweredError) as error:
                self._outage.gone(error)
                await asyncio.sleep(pauses.next())
            except ScriptError as error:
                await self._settle_apart(outcomes, error)
                await asyncio.sleep(pauses.next())
                return None
            else:
                self._outage.back()
                return settlement

    async def _settle_apart(self, outcomes: Sequence[tuple[Claim, Outcome]], error: ScriptError) -> None:
        """The server refused a call: commit its outcomes one by one; a job whose own is refused fails for that."""
        logger.error("a call was refused, its %d outcomes are sent one by one: %s", len(outcomes), error)
        self._outage.report(error)
        for claim, outcome in outcomes:
            if len(outcomes) > 1:
                await self._settle_once([(claim, outcome)])
            elif isinstance(outcome, Failed):
                logger.error("job %r of workflow %r cannot be ended: %s", claim.id, claim.workflow, error)
                self._runs.answered(claim)
            else:
                await self._settle_once([(claim, Failed(Failure.of(error)))])

    def _wants(self, total: int) -> list[tuple[str, int]]:
        """How many of each workflow, the next in turn first."""
        if total:
            self._workflows.append(self._workflows.pop(0))
        return [(workflow, max(min(total, self._room_of(workflow)), 0)) for workflow in self._workflows]

    def _room_of(self, workflow: str) -> int:
        ceiling = self._ceilings.get(workflow)
        return self._concurrency if ceiling is None else ceiling - self._runs.of(workflow)
