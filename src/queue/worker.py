from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from ..errors import InvalidArgumentError, RedisUnavailableError
from .calling import Pauses, ScriptError
from .duty import Duty, perform
from .lease import LeaseKeeper
from .link import LinkClosedError, NotSentError, UnansweredError
from .listener import SLACK, Listener
from .options import Duration
from .outage import Outage
from .presence import Presence
from .recording import Recorder
from .running import Runs
from .schedules import Fired, FireSchedules, unwatched
from .scripts.listing import leave_worker
from .settling import Settler
from .sweep import Sweep
from .validation import check_cap, check_choice, check_function, check_id, check_int, duration_ms

if TYPE_CHECKING:
    from .claim import Claim, Concludes
    from .namespace import Namespace
    from .outcome import Outcome

logger: Final = logging.getLogger(__name__)

Handler = Callable[["Claim"], "Awaitable[Outcome | str | None] | Concludes"]
MOST_SLOTS: Final = 10_000
# how long a run may clean up after it was ended, and the last commit may take
CLEAN_UP: Final = 5.0
# each of what it says when it begins to stop, and of what it says at the end
SAYS_GOODBYE_FOR: Final = 1.0
LOOP_ENDS_WITHIN: Final = 0.2


class Worker:
    """Claims jobs of one or more queues of a namespace and runs a handler for each.

    Args:
        namespace: Where the queues are.
        handlers: The handler of each queue, by its id. It gets the ``Claim`` and returns the result as text (or an
            ``Outcome``). One that is awaited has a task, which is cancelled when the job is to end. One that gives a
            future instead has none, and sees to that itself: ``claim.run_by``; one that gives ``CONCLUDES`` calls
            ``claim.conclude`` besides.
        concurrency: How many jobs at once.
        ceilings: How many of one queue at once, where that is fewer.
        limits: What each queue declares in Redis, by its id: see ``Queue.declared``.
        lease: How long a claim holds without renewal: ``timedelta`` or seconds. A job of a worker that was lost runs
            again after this and a sweep.
        grace: How long ``stop`` lets jobs run before it hands them back.
        max_blocked: How long the event loop may be blocked before the worker gives its jobs up.
        warn_blocked: How long before a warning says so. None: never.
        on_blocked: Called then, in another thread, with the seconds and the claims.
        safety: How long an idle worker relies on being woken.
        on_error: Called in the loop with what goes wrong with the worker itself: Redis is gone (once an outage), a
            background duty failed, a call was refused, a schedule cannot be fired, the worker breaks down.
        fires: Called with queue and schedule before each fire of a schedule; tells what its jobs carry.

    Example:
        >>> async def handle(claim: Claim) -> str:
        ...     return claim.data.upper()
        >>> async with queue.worker(handle, concurrency=20):
        ...     await (await queue.add("hello")).wait()
        'HELLO'
    """

    def __init__(
        self,
        namespace: Namespace,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 10,
        ceilings: Mapping[str, int] | None = None,
        limits: Mapping[str, Mapping[str, int | str]] | None = None,
        lease: Duration = 30.0,
        grace: Duration = 10.0,
        max_blocked: Duration = 300.0,
        warn_blocked: Duration | None = 5.0,
        on_blocked: Callable[[float, list[Claim]], None] | None = None,
        safety: Duration = 5.0,
        on_error: Callable[[BaseException], None] | None = None,
        fires: Callable[[str, str], Fired] = unwatched,
    ) -> None:
        self.id: Final = secrets.token_urlsafe(9)
        self.concurrency: Final = check_int(concurrency, "concurrency", 1, MOST_SLOTS)
        self._namespace = namespace
        self._handlers = _checked_handlers(handlers)
        self._ceilings = {
            check_choice(name, "ceilings", self._handlers): check_cap(most, "concurrency")
            for name, most in (ceilings or {}).items()
        }
        self._limits = limits or {}
        self._lease = duration_ms(lease, "lease", minimum=100) / 1000
        self._grace = duration_ms(grace, "grace") / 1000
        self._max_blocked = duration_ms(max_blocked, "max_blocked", minimum=1) / 1000
        self._warn_blocked = (
            None if warn_blocked is None else duration_ms(warn_blocked, "warn_blocked", minimum=1) / 1000
        )
        check_function(on_blocked, "on_blocked")
        check_function(on_error, "on_error")
        self._on_blocked = on_blocked
        self._safety = duration_ms(safety, "safety", minimum=10) / 1000
        self._on_error = on_error
        self._fires = fires
        self._started = False
        self._stopping: asyncio.Event | None = None
        self._hurry = asyncio.Event()
        self._stopped = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._breakdown: asyncio.Task[None] | None = None

    async def start(self, prepare: Callable[[], None] | None = None) -> None:
        """Work in the background until ``stop``; ``prepare`` is called before the first claim.

        Raises:
            RedisUnavailableError: Redis did not answer in time.
            RuntimeError: The worker was started before.
        """
        if self._started:
            raise RuntimeError("a worker is started once; make another")
        self._started = True
        self._stopping = asyncio.Event()
        namespace = self._namespace
        call = (await namespace.runtime()).call
        await self._declare()
        if self._stopping.is_set():
            return
        name = f"worker {self.id}"
        outage = Outage(name, self._report)
        self._blocking = namespace.connector.link(timeout=self._safety + SLACK, patient=True)
        self.recorder = Recorder(call)
        self._leases = LeaseKeeper(
            namespace.connector,
            namespace.base,
            name=name,
            lease=self._lease,
            max_blocked=self._max_blocked,
            warn_blocked=self._warn_blocked,
            on_blocked=self._on_blocked,
            broken=self._break_down,
        )
        self.runs = Runs(self._handlers, self._leases, clean_up=CLEAN_UP, call=call)
        self._settler = Settler(
            call,
            runs=self.runs,
            worker=self.id,
            lease_ms=int(self._lease * 1000),
            concurrency=self.concurrency,
            ceilings=self._ceilings,
            workflows=list(self._handlers),
            outage=outage,
        )
        self._listener = Listener(
            call=call,
            blocking=self._blocking,
            worker=self.id,
            workflows=list(self._handlers),
            patience=self._safety,
            outage=outage,
            look=self._settler.look,
            has_slot=self._settler.has_slot,
            claim_behind=self._settler.claim_behind,
            control=self.runs.control,
        )
        self._settler.idle = self._listener.want_wakes
        if prepare is not None:
            prepare()
        self._leases.start()
        self._call = call
        self._presence = Presence(call, self.id, self.concurrency, list(self._handlers), self.runs.names)
        fires = FireSchedules(call, list(self._handlers), self._safety, self._report, self._fires)
        self._listener.schedules = fires.poked.set
        duties: list[Duty] = [Sweep(call, int(self._lease * 1000)), fires, self._presence]
        self._tasks = [
            asyncio.create_task(self._settler.work(), name="lanner settler"),
            asyncio.create_task(self._settler.work_beside(), name="lanner settler"),
            asyncio.create_task(self._listener.listen(), name="lanner listener"),
            *(asyncio.create_task(perform(duty, outage), name="lanner duty") for duty in duties),
        ]
        for task in self._tasks:
            task.add_done_callback(self._task_ended)
        namespace.enter(self)
        logger.info("%s has started: %s; concurrency %d", name, ", ".join(self._handlers), self.concurrency)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """The worker's own tasks do not end by themselves: what breaks one stops the worker, and ``run`` raises it."""
        if task.cancelled():
            if self._stopping is None or self._stopping.is_set():
                return
            # by somebody else; or the loop ends, and with it everything that is in it
            task.get_loop().call_later(LOOP_ENDS_WITHIN, self._miss, task.get_name())
        elif (error := task.exception()) is not None:
            self._break_down(error)

    def _miss(self, name: str) -> None:
        if self._stopping is not None and not self._stopping.is_set():
            self._break_down(RuntimeError(f"somebody has cancelled {name!r}, a task of the worker's own"))

    def _break_down(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._report(error)
        logger.critical("worker %s has broken down and stops: its jobs are handed back", self.id, exc_info=error)
        self._hurry.set()
        self._breakdown = asyncio.create_task(self.stop(), name="lanner breakdown")

    def _report(self, error: BaseException) -> None:
        if self._on_error is not None:
            try:
                self._on_error(error)
            except Exception:
                logger.exception("on_error raised; the worker goes on")

    async def _declare(self) -> None:
        """Say in Redis what caps the code declares."""
        namespace = self._namespace
        await namespace.store_limits("", "declared", namespace.declared)
        for workflow in self._handlers:
            await namespace.store_limits(workflow, "declared", self._limits.get(workflow, {}))

    async def run(self, prepare: Callable[[], None] | None = None) -> None:
        """Start, and work until ``stop`` is called or this is cancelled, which hands the jobs back."""
        try:
            await self.start(prepare)
            await self._stopped.wait()
            if self._failure is not None:
                raise self._failure
        except RedisUnavailableError:
            if self._stopping is None or not self._stopping.is_set():
                raise
        except asyncio.CancelledError:
            self._hurry.set()
            await asyncio.shield(asyncio.ensure_future(self.stop()))
            raise

    async def stop(self, *, grace: Duration | None = None) -> None:
        """Claim no more, let jobs run for ``grace``, end and hand back the rest, and close the connections.

        Called again meanwhile it cuts the grace short.
        """
        if not self._started or self._stopping is None:
            self._started = True
            self._stopped.set()
            return
        if self._stopping.is_set():
            self._hurry.set()
            await self._stopped.wait()
            return
        self._stopping.set()
        try:
            await self._wind_down(self._grace if grace is None else duration_ms(grace, "grace") / 1000)
        finally:
            self._namespace.leave(self)
            self._stopped.set()
            logger.info("worker %s has stopped", self.id)

    async def _wind_down(self, grace: float) -> None:
        if not self._tasks:
            return
        settling, settling_beside, listening, *duties = self._tasks
        for task in (listening, *duties):
            task.cancel()
        self._settler.close()
        await asyncio.wait([listening])
        self._presence.stopping = True
        await _try_for(SAYS_GOODBYE_FOR, self._withdraw)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await _first(self.runs.idle(), self._hurry.wait())
        await self.runs.end_all()
        await _try_for(CLEAN_UP, self._commit_the_rest)
        await _try_for(SAYS_GOODBYE_FOR, self._leave)
        settling.cancel()
        settling_beside.cancel()
        await asyncio.wait(self._tasks)
        self._leases.stop()
        await self.recorder.aclose()
        await self._blocking.aclose()
        await asyncio.get_running_loop().run_in_executor(None, self._leases.join)

    async def _withdraw(self) -> None:
        await self._listener.end_pop()
        await self._settler.withdraw()
        # what this worker was woken for, and the instants that it kept, are for others from now on
        await self._settler.pass_on()
        await self._presence.once()

    async def _commit_the_rest(self) -> None:
        await self._settler.withdraw()
        await self._settler.drained()

    async def _leave(self) -> None:
        await self._settler.pass_on()
        await leave_worker(self._call, worker=self.id)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def _checked_handlers(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    if not handlers:
        raise InvalidArgumentError("handlers must have a queue at least")
    for workflow, handler in handlers.items():
        check_id(workflow, "workflow id")
        if not callable(handler):
            raise InvalidArgumentError(f"the handler of {workflow!r} must be an async function, not {handler!r}")
    return dict(handlers)


async def _try_for(seconds: float, what: Callable[[], Awaitable[None]]) -> None:
    """Do something that may be done again, for so long at most; a worker stops also when Redis is not to be had."""
    pauses = Pauses()
    with contextlib.suppress(TimeoutError, ScriptError, LinkClosedError):
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await what()
                except LinkClosedError:
                    raise
                except (NotSentError, UnansweredError):
                    await asyncio.sleep(pauses.next())


async def _first(*waits: Awaitable[Any]) -> None:
    """Wait for the first of several."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
