import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from . import keys
from .calling import Caller, Pauses, ScriptError
from .link import Link, LinkClosedError, NotSentError, UnansweredError
from .outage import Outage
from .scripts.claiming import nudge_worker, pass_wake
from .wire import ReplyError

# how much later than its time-out a blocking pop may answer before its connection counts as broken
SLACK: Final = 5.0
NUDGE: Final = "nudge"


class Listener:
    """One blocking pop: on the markers of a worker's workflows, and on its own control list.

    Attributes:
        schedules: Called when a schedule was set that may be due before any other.
    """

    def __init__(
        self,
        *,
        call: Caller,
        blocking: Link,
        worker: str,
        workflows: Sequence[str],
        patience: float,
        outage: Outage,
        look: Callable[[], None],
        has_slot: Callable[[str], bool],
        claim_behind: Callable[[Caller], asyncio.Task[None] | None],
        control: Callable[[list[str]], None],
    ) -> None:
        """Pop on ``blocking``, at most ``patience`` seconds at a time; ``call`` sends the rest.

        ``look`` is called when there may be work; where a workflow ``has_slot`` no more, its wake-up is passed on.
        ``claim_behind`` sends a claim behind the pop, where there is a slot for it: who is woken has claimed already.
        ``control`` gets news of running jobs.
        """
        self._call = call
        self._blocking = blocking
        self._worker = worker
        self._control_key = keys.control(call.base, worker)
        self._workflows = list(workflows)
        self._patience = patience
        self._outage = outage
        self._look = look
        self._has_slot = has_slot
        self._claim_behind = claim_behind
        self._call_behind = Caller(blocking, call.base)
        self._control = control
        # the workflows whose markers are left to others, as there is no slot for them
        self._deaf: set[str] = set()
        # whether no claim waits behind the pop
        self._bare = False
        self.schedules: Callable[[], None] = lambda: None
        self._nudges: set[asyncio.Task[None]] = set()

    def want_wakes(self) -> None:
        """There are slots and nothing to claim: pop again the markers of workflows for which this had stopped.

        And have a claim behind the pop, where there is none.
        """
        heard = {workflow for workflow in self._deaf if self._has_slot(workflow)}
        if heard or self._bare:
            self._deaf -= heard
            self._bare = False
            task = asyncio.create_task(self.end_pop(), name="lanner nudge")
            self._nudges.add(task)
            task.add_done_callback(self._nudges.discard)

    async def listen(self) -> None:
        """Listen until cancelled."""
        try:
            await self._listen()
        finally:
            for nudge in self._nudges:
                nudge.cancel()

    async def _listen(self) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._pop()
            except (NotSentError, UnansweredError, ReplyError, ScriptError) as error:
                self._outage.gone(error)
                await asyncio.sleep(pauses.next())
                self._may_have_missed()
            else:
                self._outage.back()
                pauses = Pauses()

    async def _pop(self) -> None:
        # instants are kept by busy workers as well
        marks = [keys.clock(self._call.base, workflow) for workflow in self._workflows]
        marks += [keys.wake(self._call.base, workflow) for workflow in self._workflows if workflow not in self._deaf]
        pop = self._blocking.call("BRPOP", self._control_key, *marks, self._patience)
        pop.add_done_callback(self._control_heard)
        behind = self._claim_behind(self._call_behind)
        self._bare = behind is None
        try:
            if behind is not None:
                # answered right after the pop, and its jobs begin first; but for news of jobs that run, which is heard
                # before, through the pop's callback
                await behind
                # what has ended at once is committed first: somebody may wait for it
                await asyncio.sleep(0)
            popped = await pop
        except asyncio.CancelledError:
            pop.cancel()
            if behind is not None:
                behind.cancel()
            raise
        except (NotSentError, UnansweredError, ReplyError):
            if behind is None:
                raise
            # the claim has said of the outage what there is to say, and was made until it was answered
            self._may_have_missed()
        else:
            await self._heard(popped, claimed=behind is not None)

    def _may_have_missed(self) -> None:
        """A marker may have been popped whose name never arrived."""
        self.schedules()
        self._look()

    def _control_heard(self, pop: asyncio.Future[list[bytes] | None]) -> None:
        """News of a running job is heard before anything begins that was claimed behind the pop, maybe in its place."""
        if pop.cancelled() or pop.exception() is not None or (popped := pop.result()) is None:
            return
        if popped[0].decode() == self._control_key and (text := popped[1].decode()) != NUDGE:
            self._control(text.split("\n", 4))

    async def _heard(self, popped: list[bytes] | None, *, claimed: bool) -> None:
        """What was popped, or nothing for long; whether a claim was made behind it."""
        key = "" if popped is None else popped[0].decode()
        controls = key == self._control_key
        if not claimed and not controls:
            self._look()
        if controls or popped is None:
            return
        workflow, kind = key.split(":")[-2:]
        if kind == "clock":
            self.schedules()
            return
        # the next in turn is asked first
        self._workflows.append(self._workflows.pop(0))
        if not self._has_slot(workflow):
            self._deaf.add(workflow)
            await pass_wake(self._call, workflow=workflow, instants=False)

    async def end_pop(self) -> None:
        """Have the pop that is under way end, until it is known to: left alone it takes a wake-up of others."""
        pauses = Pauses()
        while True:
            try:
                await nudge_worker(self._call, worker=self._worker)
            except LinkClosedError:
                return
            except (NotSentError, UnansweredError, ScriptError):
                await asyncio.sleep(pauses.next())
            else:
                return
