import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Final, Protocol, Self, TypeVar, Unpack, cast

import redis.asyncio

from ..errors import ClosedError
from . import keys
from .calling import pairs_of, persist
from .connection import Connector
from .limits import Limits, RateLimit, pack_cap, pack_limiters, read_limits
from .options import Duration, JobOptions, pack_options
from .presence import LOST_AFTER_MS, WorkerInfo
from .queue import Queue
from .runtime import Runtime
from .scripts.controlling import maintain_groups, set_limits, set_paused
from .scripts.descending import ENDED_AT_ONCE, end_descendants
from .scripts.listing import list_workers
from .validation import check_cap, check_id, check_mapping, duration_ms

T = TypeVar("T")
DEFAULT_PREFIX: Final = "lanner"
WORKERS_AT_ONCE: Final = 500
# how often it is looked whether a loop that is asked for something still runs
LOOK_AGAIN: Final = 0.1
_foreign: Final[list[Runtime]] = []


class Stoppable(Protocol):
    """What works in an event loop until it is stopped."""

    async def stop(self) -> None:
        """Stop it, and wait for that."""
        ...


class Namespace:
    """A set of queues that share one Redis, a cap and a pause. Text in, text out: it knows nothing of workflows.

    Args:
        id: 1 to 128 of ``A-Z a-z 0-9 _ . -``.
        redis: A URL (``redis://``, ``rediss://``, ``unix://``, ``redis+sentinel://HOST:PORT,.../MASTER``,
            ``redis+cluster://HOST:PORT,...``), ``"embedded"``, ``"embedded:PATH"``, or a client of ``redis.asyncio``
            whose settings are used (it is never closed). Default: ``LANNER_REDIS_URL``, else localhost.
        prefix: The beginning of every key, without braces.
        concurrency: How many jobs of all its queues may run at once; workers declare it. None: no cap.
        defaults: Options of every job, below those of its queue and its call.
        limiters: Rate limiters by name, which its queues share; workers declare them.
        producer_timeout: How long a producer's call may take, Redis being away, before it fails: ``timedelta`` or
            seconds.

    Example:
        >>> namespace = Namespace("shop", redis="embedded")
        >>> queue = namespace.queue("mails")
    """

    def __init__(
        self,
        id: str,
        *,
        redis: "str | redis.asyncio.Redis | redis.asyncio.RedisCluster | None" = None,
        prefix: str = DEFAULT_PREFIX,
        concurrency: int | None = None,
        defaults: JobOptions | None = None,
        limiters: Mapping[str, RateLimit] | None = None,
        producer_timeout: Duration = 5.0,
    ) -> None:
        self.id: Final = check_id(id, "namespace id")
        self.concurrency: Final = check_cap(concurrency, "concurrency")
        self.base = keys.base(check_id(prefix, "prefix"), id)
        self.defaults: Final[JobOptions] = (
            {} if defaults is None else cast("JobOptions", check_mapping(defaults, "defaults"))
        )
        pack_options(self.defaults)  # refuses what no queue could use
        self.timeout: Final = duration_ms(producer_timeout, "producer_timeout", minimum=1) / 1000
        self.limiters: Final[Mapping[str, RateLimit]] = {} if limiters is None else check_mapping(limiters, "limiters")
        self.declared: Final[Mapping[str, int | str]] = {
            "concurrency": pack_cap(self.concurrency),
            "limiters": pack_limiters(self.limiters) if self.limiters else "unset",
        }
        self.connector = Connector(redis, self.base)
        self._runtimes: dict[asyncio.AbstractEventLoop, Runtime] = {}
        self._pid = os.getpid()
        self._closed: bool = False
        self._workers: dict[Stoppable, asyncio.AbstractEventLoop] = {}

    def queue(
        self,
        id: str,
        *,
        concurrency: int | None = None,
        group_concurrency: int | None = 1,
        limiters: Sequence[str] | None = None,
        events: int = 0,
        **defaults: Unpack[JobOptions],
    ) -> Queue:
        """A queue of the namespace.

        Args:
            id: 1 to 128 of ``A-Z a-z 0-9 _ . -``.
            concurrency: How many of its jobs may run at once, over all workers. None: no cap.
            group_concurrency: How many jobs of one group may run at once. None: no cap.
            limiters: The names of the namespace's rate limiters that hold for it. None: all of them.
            events: How many events (added, started, ended) its stream keeps for dashboards; 0: it has none.
            **defaults: Options of its jobs; see ``JobOptions``.
        """
        return Queue(
            self,
            id,
            concurrency=concurrency,
            group_concurrency=group_concurrency,
            limiters=limiters,
            events=events,
            defaults=defaults,
        )

    async def runtime(self) -> Runtime:
        """This event loop's connections, opened and checked.

        Raises:
            ClosedError: The namespace has been closed.
            RedisUnavailableError: Redis did not answer in time.
        """
        if self._closed:
            raise ClosedError(f"namespace {self.id!r} has been closed")
        if self._pid != os.getpid():
            # closing these connections here would close them for the process that forked this one
            _foreign.extend(self._runtimes.values())
            self._runtimes, self._workers, self._pid = {}, {}, os.getpid()
        loop = asyncio.get_running_loop()
        runtime = self._runtimes.get(loop)
        if runtime is None:
            # another loop's connections are not ours to use; it closes them when it ends
            for ended in [other for other in tuple(self._runtimes) if other.is_closed()]:
                self._runtimes.pop(ended, None)
            runtime = self._runtimes[loop] = Runtime(self.connector, self.base, self.timeout)
        await runtime.open()
        return runtime

    @contextlib.contextmanager
    def elsewhere(self, redis: str, *, prefix: str) -> Generator[None]:
        """For the block, be on another Redis and begin every key otherwise; for tests of namespaces made at import."""
        kept = (self.base, self.connector, self._runtimes, self._workers, self._closed)
        self.base = keys.base(check_id(prefix, "prefix"), self.id)
        self.connector = Connector(redis, self.base)
        self._runtimes, self._workers, self._closed = {}, {}, False
        try:
            yield
        finally:
            self.connector.close()
            self.base, self.connector, self._runtimes, self._workers, self._closed = kept

    async def persist(self, call: Callable[[Runtime], Awaitable[T]], what: str, before: str = "") -> T:
        """Make a repeatable call, Redis being away for no longer than the namespace's timeout."""
        runtime = await self.runtime()
        return await persist(
            lambda: call(runtime), link=runtime.call.link, timeout=self.timeout, what=lambda: what, before=before
        )

    async def set_limits(self, *, concurrency: int | None) -> None:
        """Set how many jobs of the whole namespace may run at once, for every process, from now on. None: no cap."""
        await self.store_limits("", "override", {"concurrency": pack_cap(check_cap(concurrency, "concurrency"))})

    async def limits(self) -> Limits:
        """The namespace's cap, and whether it is paused, as they stand for every process."""
        return read_limits(await self.stored_limits(""))

    async def stored_limits(self, workflow: str) -> dict[str, str]:
        """The hash of what is stored of limits for a queue, or (empty) for the namespace."""
        key = keys.limits(self.base, workflow)
        flat: list[bytes] = await self.persist(lambda runtime: runtime.call.link.call("HGETALL", key), "reading limits")
        return pairs_of(flat)

    async def workers(self) -> list[WorkerInfo]:
        """The workers that live, and the last 50 that have gone (``departed`` says how), those that live first."""
        living: dict[str, WorkerInfo] = {}
        page: list[tuple[str, int, str]] = []
        departed: list[list[str]] = []
        skip = 0
        while skip == 0 or len(page) == WORKERS_AT_ONCE:
            start = skip
            page, departed = await self.persist(
                lambda runtime: list_workers(
                    runtime.call,
                    ttl=LOST_AFTER_MS,
                    skip=start,  # noqa: B023 - awaited at once
                    limit=WORKERS_AT_ONCE,
                ),
                "listing workers",
            )
            # who has said something meanwhile moves to the front, and others may come twice, but nobody is left out
            living |= {worker: WorkerInfo.of(worker, seen, about) for worker, seen, about in page}
            skip += WORKERS_AT_ONCE
        return [*reversed(living.values())] + [
            WorkerInfo.of(worker, int(when), about, how) for worker, how, when, about in departed
        ]

    async def end_descendants(self, done: str) -> None:
        """Do what was put off, as to end jobs whose parents were cancelled, 50 a call; workers do what is left.

        ``done`` says for errors what it follows.
        """
        ended = ENDED_AT_ONCE
        while ended == ENDED_AT_ONCE:
            ended = await self.persist(
                lambda runtime: end_descendants(runtime.call),
                "doing what follows",
                f"{done}, and workers do what follows from it.",
            )

    async def store_limits(self, workflow: str, level: str, limits: Mapping[str, int | str]) -> None:
        """Store limits of a queue, or (empty) of the namespace; groups that wait follow."""
        regroup, readmit = await self.persist(
            lambda runtime: set_limits(runtime.call, workflow=workflow, level=level, limits=list(limits.items())),
            "setting limits",
        )
        cursor = 0
        while regroup:
            position = cursor
            cursor = await self.persist(
                lambda runtime: maintain_groups(runtime.call, workflow=workflow, cursor=position),  # noqa: B023 - awaited at once
                "bringing waiting groups in line with limits",
                "The limits are set, and groups follow as their jobs end.",
            )
            regroup = cursor != 0
        if readmit:
            await self.end_descendants("The limits are set")

    async def pause(self) -> None:
        """Claim nothing of the namespace from now on; what runs goes on."""
        await self.persist(lambda runtime: set_paused(runtime.call, workflow="", paused=True), "pausing")

    async def resume(self) -> None:
        """Claim again after ``pause``."""
        await self.persist(lambda runtime: set_paused(runtime.call, workflow="", paused=False), "resuming")

    def enter(self, worker: Stoppable) -> None:
        """A worker of the namespace has started in this event loop: closing stops it first."""
        self._workers[worker] = asyncio.get_running_loop()

    def leave(self, worker: Stoppable) -> None:
        """A worker has stopped."""
        self._workers.pop(worker, None)

    async def leave_loop(self) -> None:
        """Close the connections of this event loop; those of others stay."""
        runtime = self._runtimes.pop(asyncio.get_running_loop(), None)
        if runtime is not None:
            await runtime.aclose()

    async def aclose(self) -> None:
        """Stop the workers of this process, fail pending waits, close the connections."""
        if self._closed:
            return
        # what a forked process has inherited is its parent's
        own = self._pid == os.getpid()
        workers = tuple(self._workers.items()) if own else ()
        await asyncio.gather(*(_within(loop, worker.stop) for worker, loop in workers))
        self._closed = True
        for loop, runtime in tuple(self._runtimes.items()) if own else ():
            await _within(loop, runtime.aclose)
        self.connector.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _within(loop: asyncio.AbstractEventLoop, what: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have something done in the event loop that it belongs to. One that ends takes along what is in it."""
    if loop is asyncio.get_running_loop():
        await what()
        return
    if not loop.is_running():
        return
    done = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what(), loop))
    while not done.done() and loop.is_running():
        await asyncio.wait([done], timeout=LOOK_AGAIN)
    if done.done() and not done.cancelled():
        done.result()
