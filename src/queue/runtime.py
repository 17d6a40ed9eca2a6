"""What a namespace holds in one event loop: its link, its groupers, its waiters."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

import msgspec

from ..errors import DataModelError, RedisUnavailableError, ServerVersionError
from . import keys
from .calling import MAYBE_DONE, NOTHING_DONE, Caller, persist
from .connection import Connector
from .grouping import Grouper
from .scripts.adding import NewJob, Standing, add_jobs
from .scripts.controlling import open_namespace
from .scripts.descending import FlowNode, add_flow
from .scripts.ending import Role
from .waiting import Waiters
from .wire import ReplyError

logger: Final = logging.getLogger(__name__)
GROUP: Final = "adding jobs"
# of adding jobs: while Redis does one, what came of the other is seen to
CALLS_AT_ONCE: Final = 2
MOST_OF_A_GROUP: Final = 64
ENOUGH_BESIDE: Final = 16
OLDEST: Final = {"redis": (6, 2), "valkey": (7, 2)}


class Runtime:
    """One event loop's connections to one namespace's Redis."""

    def __init__(self, connector: Connector, base: str, timeout: float) -> None:
        self._timeout = timeout
        self._connector = connector
        self._producer = secrets.token_urlsafe(9)
        self._opened = asyncio.Lock()
        self._is_open = False
        self._guard: AsyncGenerator[None] | None = None
        self._closing, self._closed = False, asyncio.Event()
        self.call = Caller(connector.link(), base)
        self.waiters = Waiters(self.call, connector, self._producer)
        # a receipt is that of the last call: a second one on the wire, with the same name, would hide the first
        self._producers = [_Producer(f"{self._producer}/{n}") for n in range(CALLS_AT_ONCE)]
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)
        self._adder = Grouper(
            partial(self.add, what=GROUP),
            size=lambda new: len(new.data) + len(new.rest) + len(new.id),
            most=MOST_OF_A_GROUP,
            timeout=timeout,
            beside=ENOUGH_BESIDE,
        )

    async def open(self) -> None:
        """Check the server and the data, once.

        Raises:
            EmbeddedServerError: The embedded server cannot be found or started.
            RedisUnavailableError: Redis did not answer in time.
            ServerVersionError: It is too old.
            DataModelError: The data was written by a newer Lanner.
        """
        if not self._is_open:
            async with self._opened:
                if self._guard is None:
                    self._guard = self._close_with_loop()
                    await anext(self._guard)
                await self._connector.prepare()
                what = f"connecting to Redis{self._connector.remark or f' at {self._connector}'}"
                await persist(self._check, link=self.call.link, timeout=self._timeout, what=lambda: what)

    async def _check(self) -> None:
        if self._is_open:
            return
        check_version((await self.call.link.call("INFO", "server")).decode())
        version = await open_namespace(self.call, version=keys.DATA_MODEL)
        if version > keys.DATA_MODEL:
            raise DataModelError(
                f"{self.call.base} was written by a newer Lanner (data model {version}; this one knows "
                f"{keys.DATA_MODEL}): upgrade this process"
            )
        self._is_open = True
        try:
            policy = await self.call.link.call("CONFIG", "GET", "maxmemory-policy")
        except ReplyError:  # a managed server may not tell
            return
        if policy and policy[1] != b"noeviction":
            logger.warning(
                "Redis has maxmemory-policy %s and may drop jobs when its memory is full: set it to noeviction",
                policy[1].decode(),
            )

    async def submit(self, new: NewJob) -> Standing | None:
        """Add a job together with others. None, or the job that stands in its place.

        Raises:
            RedisUnavailableError: Redis did not answer in time, be it for the jobs that are before it.
        """
        if self._adder.idle and len(self._producers) == CALLS_AT_ONCE:
            # nobody to go together with: those who come meanwhile go together after it
            return (await self.add([new]))[0]
        try:
            return await self._adder.submit(new)
        except TimeoutError:
            raise RedisUnavailableError(
                f"{_named([new])}: no answer within {self._timeout:g} s. {MAYBE_DONE}"
            ) from None
        except RedisUnavailableError as error:
            # all of a group get the same one; each hears of its own job
            raise RedisUnavailableError(str(error).replace(GROUP, _named([new]), 1)) from error

    async def heard_of(self, new: NewJob, role: Role) -> NewJob:
        """A job as it is sent where this process is to hear of it from its first moment.

        Raises:
            RedisUnavailableError: Redis did not answer in time.
        """
        try:
            process = await self.waiters.ready(self._timeout)
        except TimeoutError:
            raise RedisUnavailableError(
                f"{_named([new])}: Redis cannot be reached: no answer within {self._timeout:g} s. {NOTHING_DONE}"
            ) from None
        return msgspec.structs.replace(new, waiter=f"{role} {process}")

    async def add(self, jobs: Sequence[NewJob], what: str = "") -> list[Standing | None]:
        """Add jobs in one call; for each None, or the job that stands in its place.

        Raises:
            RedisUnavailableError: Redis did not answer in time.
        """
        began = time.monotonic()
        if self._turns.locked():
            await self._wait_for_turn(jobs, what)
        else:
            await self._turns.acquire()
        producer = self._producers.pop()
        try:
            producer.number += 1
            number = producer.number
            return await persist(
                lambda: add_jobs(self.call, producer=producer.name, number=number, jobs=jobs),
                link=self.call.link,
                timeout=began + self._timeout - time.monotonic(),
                what=lambda: what or _named(jobs),
            )
        finally:
            self._producers.append(producer)
            self._turns.release()

    async def _wait_for_turn(self, jobs: Sequence[NewJob], what: str) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise RedisUnavailableError(
                f"{what or _named(jobs)}: calls before it had no answer for {self._timeout:g} s. {NOTHING_DONE}"
            ) from None

    async def add_flow(self, nodes: Sequence[FlowNode]) -> Standing | None:
        """Add a tree of jobs in one call. None, or the job that has the root's id.

        Raises:
            RedisUnavailableError: Redis did not answer in time.
        """
        producer = secrets.token_urlsafe(9)
        return await persist(
            lambda: add_flow(self.call, producer=producer, number=1, nodes=nodes),
            link=self.call.link,
            timeout=self._timeout,
            what=lambda: f"adding the flow of job {nodes[0].id!r} to {nodes[0].workflow!r}",
        )

    async def _close_with_loop(self) -> AsyncGenerator[None]:
        """Close the connections when the loop ends and nobody has: a loop finishes its asynchronous generators."""
        try:
            yield
        finally:
            self._guard = None  # whoever closes them at this moment has nothing to finish any more
            await self._aclose()

    async def aclose(self) -> None:
        """Close the connections. Waits fail at once."""
        await self._aclose()
        if self._guard is not None:
            await self._guard.aclose()

    async def _aclose(self) -> None:
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        try:
            await self.waiters.aclose()
            await self._adder.aclose()
            await self.call.link.aclose()
        finally:
            self._closed.set()


class _Producer:
    """Who makes one call at a time, with the number of the last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0


def _named(jobs: Sequence[NewJob]) -> str:
    ids = ", ".join(repr(new.id) for new in jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")  # noqa: PLR2004
    return f"adding job {ids} to {jobs[0].workflow!r}"


def check_version(info: str) -> None:
    """Refuse a server that is too old, by what INFO says of it, or whose Lua writes no instant as a whole number.

    Raises:
        ServerVersionError: It is too old, or a build for 32 bits.
    """
    if re.search(r"arch_bits:32\b", info):
        raise ServerVersionError("the server is a build for 32 bits: Lanner needs one for 64")
    valkey = re.search(r"valkey_version:(\d+)\.(\d+)", info)
    kind, found = ("valkey", valkey) if valkey else ("redis", re.search(r"redis_version:(\d+)\.(\d+)", info))
    if found is None:
        return
    version = (int(found[1]), int(found[2]))
    if version < OLDEST[kind]:
        raise ServerVersionError(
            f"the server is {kind} {version[0]}.{version[1]}: Lanner needs Redis 6.2 or Valkey 7.2, or newer"
        )
