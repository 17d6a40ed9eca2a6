"""The worker's heart: each of its calls commits outcomes in a group, and claims jobs for the slots they free."""

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
from .seldom import Seldom

logger: Final = logging.getLogger(__name__)
CLAIMED_AT_ONCE: Final = 64
COMMITTED_AT_ONCE: Final = 64
# of fewer it does not pay to make two calls
LEAST_OF_A_BATCH: Final = 16
COMMITTED_BYTES: Final = 1 << 20
# behind a pop: the loop may be blocked when it comes back, and what is left wakes others
CLAIMED_BEHIND: Final = 4
# of the loop, until the outcomes of runs that do nothing are on the wire
TURNS_OF_A_RUN: Final = 4


class Settler:
    """While a call is on the wire, outcomes gather; the next carries all of them.

    A worker of many slots has two calls on the wire: while Redis does one, what came of the other is run. A third waits
    behind the pop that an idle worker blocks in, and claims in the moment that one ends.

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
        # the first call carries whatever there is, the second what is half of all slots at least
        self._batch = min(max((concurrency + 1) // 2, LEAST_OF_A_BATCH), COMMITTED_AT_ONCE)
        self._lanes = (_Lane(0), _Lane(1), _Lane(2))
        # whether the claim behind a pop was answered just now, and is about to be renewed: its slots are left to it
        self._renews = False
        self._lanes[0].signal.set()
        self._looking = True
        # whether what is due is to be made runnable, be there a slot for it or not
        self._due = False
        self._closed = False
        self._drained = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._refusals: Pauses | None = None
        self._seldom = Seldom()
        self.idle: Callable[[], None] = lambda: None
        runs.changed = self._changed

    def look(self) -> None:
        """There may be work, or an instant to wait for."""
        self._looking = self._due = True
        self._lanes[0].signal.set()

    def has_slot(self, workflow: str) -> bool:
        """Whether a job of a workflow could be run now, or after a call that only looks for some."""
        looks = [lane for lane in self._lanes if lane.asks and not lane.commits]
        free = self._free() + sum(lane.asks for lane in looks)
        room = self._room_of(workflow) + sum(lane.most.get(workflow, 0) for lane in looks)
        return not self._closed and free > 0 and room > 0

    def close(self) -> None:
        """Claim no more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._lanes[0].signal.set()

    async def drained(self) -> None:
        """Wait until every outcome has been committed, and what was claimed meanwhile handed back."""
        while self._runs.outbox or any(lane.in_flight for lane in self._lanes):
            self._drained.clear()
            if self._runs.outbox:
                self._lanes[0].signal.set()
            await self._drained.wait()

    async def pass_on(self) -> None:
        """Have somebody else woken for what this worker may have been woken for."""
        for workflow in self._workflows:
            await pass_wake(self._call, workflow=workflow, instants=True)

    async def work(self) -> None:
        """Settle until cancelled."""
        await self._work(self._lanes[0], 1)

    async def work_beside(self) -> None:
        """Settle whenever many outcomes have gathered while another call is on the wire, until cancelled."""
        await self._work(self._lanes[1], self._batch)

    def claim_behind(self, call: Caller) -> asyncio.Task[None] | None:
        """Claim for the slots that are free now, behind what blocks the connection of ``call``.

        None: none is free, or another call is to look first, and has no outcomes for which it goes out all the same.
        """
        self._renews = False
        looks_first = (self._looking or self._due) and not self._runs.outbox
        if self._closed or looks_first or self._free() <= 0:
            return None
        lane = self._lanes[2]
        # the slots are its own from now on
        wants = self._ask(lane, [], CLAIMED_BEHIND)
        claiming = asyncio.create_task(self._claim_behind(call, lane, wants), name="lanner claim")
        claiming.add_done_callback(self._claim_ended)
        return claiming

    def _claim_ended(self, claiming: asyncio.Task[None]) -> None:
        if claiming.cancelled():
            # it may have been before its first step, which it never takes then
            self._lanes[2].end()
            self._drained.set()
            return
        self._renews = True
        loop = claiming.get_loop()
        # after the turn in which it is renewed, if it is
        loop.call_soon(loop.call_soon, self._give_up_slots)

    def _give_up_slots(self) -> None:
        if self._renews:
            self._renews, self._looking = False, True
            self._lanes[0].signal.set()

    async def _claim_behind(self, call: Caller, lane: _Lane, wants: list[tuple[str, int]]) -> None:
        await self._settle(call, lane, [], wants)
        # what it has left is for a call that blocks nowhere
        if self._looking or self._due:
            self._lanes[0].signal.set()

    async def withdraw(self) -> None:
        """Have a claim that was given up while it waited behind a pop come to nothing, or hand back what it got."""
        lane = self._lanes[2]
        if lane.unanswered:
            settlement = await self._persist(self._call, lane, [], 0, self._wants(0))
            if settlement is not None:
                self._take_over([], settlement)
            lane.unanswered = 0

    async def _work(self, lane: _Lane, least: int) -> None:
        while True:
            await lane.signal.wait()
            lane.signal.clear()
            while len(self._runs.outbox) >= least or (lane is self._lanes[0] and self._may_claim()):
                outcomes = self._take()
                await self._settle(self._call, lane, outcomes, self._ask(lane, outcomes))
                # what ends at once comes along: a run takes a turn of the loop, and its end may take another
                await asyncio.sleep(0)
                if len(self._runs):
                    await asyncio.sleep(0)
            if not self._runs.outbox:
                self._drained.set()

    def _may_claim(self) -> bool:
        return not self._closed and (self._due or (self._looking and self._free() > 0))

    def _changed(self) -> None:
        self._looking = True
        first, beside, _ = self._lanes
        if not first.in_flight:
            first.signal.set()
        # the first looks at what there is when it is answered
        elif len(self._runs.outbox) >= self._batch:
            beside.signal.set()

    def _have_the_rest_sent(self) -> None:
        if len(self._runs.outbox) >= self._batch and self._lanes[0].in_flight:
            self._lanes[1].signal.set()

    def _free(self) -> int:
        """Slots that nothing runs in, and no call on the wire may fill."""
        first, beside, behind = self._lanes
        asked = first.asks + beside.asks + behind.asks
        return self._concurrency - len(self._runs) - len(self._runs.outbox) - asked

    def _take(self) -> list[tuple[Claim, Outcome]]:
        size = count = 0
        outbox = self._runs.outbox
        for _, outcome in outbox[: self._batch]:
            size += len(getattr(outcome, "result", ""))
            if count and size > COMMITTED_BYTES:
                break
            count += 1
        taken, outbox[:] = outbox[:count], outbox[count:]
        return taken

    def _ask(
        self, lane: _Lane, outcomes: Sequence[tuple[Claim, Outcome]], most: int = CLAIMED_AT_ONCE
    ) -> list[tuple[str, int]]:
        """Take a number and the slots that are free; how many jobs of each workflow are wanted for them."""
        # who has no outcomes is to look, with all slots there are, and the claim behind the pop comes after that
        left = CLAIMED_BEHIND if self._renews and outcomes else 0
        total = 0 if self._closed else min(max(self._free() - left, 0), most)
        wants = self._wants(total)
        self._looking = self._due = False
        lane.begin(total, dict(wants), commits=bool(outcomes))
        self._have_the_rest_sent()
        return wants

    async def _settle(
        self, call: Caller, lane: _Lane, outcomes: list[tuple[Claim, Outcome]], wants: list[tuple[str, int]]
    ) -> None:
        total, token = lane.asks, f"{self._worker}:{lane.unanswered}"
        self._runs.expect(token)
        try:
            settlement = await self._persist(call, lane, outcomes, total, wants)
            lane.unanswered = 0
        finally:
            lane.end()
        if lane is self._lanes[1]:
            await self._keep_out_of_step()
        if settlement is not None:
            self._refusals = None
            self._take_over(outcomes, settlement)
            if not self._closed:
                self._plan(settlement, total)
        elif not self._closed:
            # nobody would wake anybody for what the refused call would have found
            self._refusals = self._refusals or Pauses()
            self._look_in(self._refusals.next())
        self._runs.have(token)

    async def _keep_out_of_step(self) -> None:
        """Let the other call go out first where both were answered at once.

        Redis answers calls that it reads together when it has done them all: they would be together for ever, and one
        of Redis and this worker would always wait for the other.
        """
        for _ in range(TURNS_OF_A_RUN):
            if self._lanes[0].in_flight:
                break
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _take_over(self, outcomes: Sequence[tuple[Claim, Outcome]], settlement: Settlement) -> None:
        for (claim, outcome), applied in zip(outcomes, settlement.applied, strict=True):
            self._runs.answered(claim)
            if applied:
                if claim.settled is not None:
                    _tell(claim, claim.settled, outcome)
            else:
                logger.warning(
                    "job %r of workflow %r was taken over, or removed, before its end (%s) could be committed",
                    claim.id,
                    claim.workflow,
                    type(outcome).__name__.lower(),
                )
        for place in settlement.crowded:
            self._warn_of_drops(outcomes[place][0])
        for claim in settlement.claims:
            if self._closed:
                self._runs.hand_back(claim)
            else:
                self._runs.begin(claim, unread=claim in settlement.unread)

    def _warn_of_drops(self, claim: Claim) -> None:
        """Failed jobs are gone that somebody may have wanted to retry; said now and then."""
        if self._seldom.may_say(claim.workflow):
            logger.warning(
                "workflow %r has more failed jobs than are kept: the oldest are dropped (keep_failed=%d). Retry those "
                "that are left, or have more kept",
                claim.workflow,
                claim.spec.keep_failed[0],
            )

    def _plan(self, settlement: Settlement, total: int) -> None:
        """When to look again: at once, at an instant, or when woken."""
        if settlement.again_ms == 0:
            self.look()
            return
        if settlement.again_ms is not None:
            # a timer's instant is rounded down to a millisecond by Redis' clock: never look too early
            self._look_in((settlement.again_ms + 1) / 1000)
        if len(settlement.claims) >= total:
            self._looking = True
        else:
            self.idle()

    def _look_in(self, seconds: float) -> None:
        """Look at an instant, or at an earlier one that another call has found: not every call sees every instant."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._look_now)

    def _look_now(self) -> None:
        self._timer = None
        self.look()

    async def _persist(
        self,
        call: Caller,
        lane: _Lane,
        outcomes: Sequence[tuple[Claim, Outcome]],
        total: int,
        wants: Sequence[tuple[str, int]],
    ) -> Settlement | None:
        """Settle until it is answered, however long Redis is away; first with ``call``, which may be blocked."""
        number, pauses = lane.unanswered, Pauses()
        while True:
            try:
                settlement = await settle(
                    call,
                    worker=self._worker,
                    number=number,
                    lease=self._lease_ms,
                    total=total,
                    outcomes=outcomes,
                    wants=wants,
                )
            except (NotSentError, UnansweredError) as error:
                self._outage.gone(error)
                call = self._call
                await asyncio.sleep(pauses.next())
            except ScriptError as error:
                await self._settle_apart(lane, outcomes, error)
                await asyncio.sleep(pauses.next())
                return None
            else:
                self._outage.back()
                return settlement

    async def _settle_apart(self, lane: _Lane, outcomes: Sequence[tuple[Claim, Outcome]], error: ScriptError) -> None:
        """The server refused a call: commit its outcomes one by one; a job whose own is refused fails for that."""
        logger.error("a call was refused, its %d outcomes are sent one by one: %s", len(outcomes), error)
        self._outage.report(error)
        for claim, outcome in outcomes:
            if len(outcomes) == 1 and isinstance(outcome, Failed):
                logger.error("job %r of workflow %r cannot be ended: %s", claim.id, claim.workflow, error)
                self._runs.answered(claim)
            else:
                alone = [(claim, outcome if len(outcomes) > 1 else Failed(Failure.of(error)))]
                await self._settle(self._call, lane, alone, self._ask(lane, alone))

    def _wants(self, total: int) -> list[tuple[str, int]]:
        """How many of each workflow, the next in turn first."""
        if total:
            self._workflows.append(self._workflows.pop(0))
        return [(workflow, max(min(total, self._room_of(workflow)), 0)) for workflow in self._workflows]

    def _room_of(self, workflow: str) -> int:
        ceiling = self._ceilings.get(workflow)
        if ceiling is None:
            return self._concurrency
        return ceiling - self._runs.of(workflow) - sum(lane.most.get(workflow, 0) for lane in self._lanes)


def _tell(claim: Claim, settled: Callable[[Outcome], None], outcome: Outcome) -> None:
    """Whatever comes of being told costs the worker nothing."""
    try:
        settled(outcome)
    except Exception:
        logger.exception("what was to be told of job %r of workflow %r has failed", claim.id, claim.workflow)


class _Lane:
    """One call on the wire at a time, with numbers of its own: the receipt of one lane hides none of the others'.

    Attributes:
        asks: How many jobs the call on the wire may come back with, and ``most`` how many of each workflow.
        commits: Whether it has outcomes.
        unanswered: The number of the last call, while its answer has not come.
    """

    def __init__(self, number: int) -> None:
        self.signal = asyncio.Event()
        self.in_flight = self.commits = False
        self.asks = 0
        self.most: Mapping[str, int] = {}
        self.unanswered = 0
        self._number = number

    def begin(self, asks: int, most: Mapping[str, int], *, commits: bool) -> None:
        """A call goes out; the numbers of three lanes differ when divided by three."""
        self._number += 3
        self.unanswered, self.in_flight, self.asks, self.most, self.commits = self._number, True, asks, most, commits

    def end(self) -> None:
        """No call is on the wire any more."""
        self.in_flight = self.commits = False
        self.asks, self.most = 0, {}
